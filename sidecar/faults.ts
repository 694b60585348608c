/**
 * Named points at which a test can end the agent. In a running sidecar they do nothing.
 */
export type Fault = (point: string) => void

export const noFault: Fault = () => {}

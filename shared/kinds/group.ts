/**
 * The API group of Shipmate's own kinds, and their version.
 */
export const group = 'shipmate.dev'
export const version = 'v1alpha1'

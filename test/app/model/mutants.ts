/**
 * Mistakes that somebody could make, each of which breaks a promise: a model that does not find them checks nothing.
 */
export const mutants = {
  sendBeforeWriting: 'a run is sent before it stands in the status',
  noFenceCheck: 'a sidecar takes any fence',
  noJournalCheck: 'a sidecar takes runs that were written for another journal',
  actBeforeStoring: 'what a new status permits is done before it is stored',
  madeAnew: 'an Operation that has vanished is taken for one that was never made',
  retryUnknown: 'an unknown outcome is tried again',
  neverAlive: 'processes that nobody can ask are taken for dead',
  noVersions: 'the status is written whatever it has become meanwhile',
  forgetSettles: 'a pod that does not know a run is taken for one where it failed',
} as const

export type Mutant = keyof typeof mutants

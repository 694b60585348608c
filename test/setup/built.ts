/**
 * Fails a test file that uses dist when dist could not be built: it would test the last one that could.
 */
import { inject } from 'vitest'

const error = inject('buildError')
if (error) throw new Error(`dist could not be built:\n${error}`)

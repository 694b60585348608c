/**
 * Skips every test of the file that is about to be collected, its hooks included; the tests are still counted.
 */
import { TestRunner } from 'vitest'

const file = TestRunner.getCurrentSuite()
file.options = { ...file.options, skip: true }

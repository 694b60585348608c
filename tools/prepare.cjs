/*
 * Builds dist after `npm ci` in a clone. Where the development dependencies were left out, there is nothing to build with: it says so and succeeds.
 * Plain old JavaScript, as it may run on any Node.
 */
'use strict'
var spawnSync = require('child_process').spawnSync
var path = require('path')

// npm runs this on these commands too: a package is packed right after prepack has built it, and npx must only run what is there.
var isBuilt = ['pack', 'publish', 'exec'].indexOf(process.env.npm_command) !== -1

function build() {
  try {
    require.resolve('esbuild')
    require.resolve('node/package.json')
  } catch (_) {
    console.log('prepare: dist is not built, as the development dependencies are not installed')
    return 0
  }
  return spawnSync('node', [path.join(__dirname, '..', 'build.ts')], { stdio: 'inherit' }).status
}

process.exitCode = isBuilt ? 0 : build()

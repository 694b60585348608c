#!/usr/bin/env node
/*
 * Starts the command line, or says in one sentence that this Node is too old for it.
 * Old syntax throughout, so that an old Node gets as far as saying so.
 */
'use strict'
var needed = [22, 19]
var found = process.versions.node.split('.').map(Number)

function fail(sentence) {
  console.error('shipmate: ' + sentence)
  process.exitCode = 1
}

if (found[0] < needed[0] || (found[0] === needed[0] && found[1] < needed[1])) {
  fail(
    'Node.js ' +
      needed.join('.') +
      ' or newer is needed, but this is ' +
      process.versions.node +
      ': install a newer one from https://nodejs.org, or put it first on your PATH.'
  )
} else {
  import('../dist/cli.js')
    .then(function (cli) {
      return cli.main(process.argv.slice(2))
    })
    .then(
      function (code) {
        process.exitCode = code
      },
      function (error) {
        var isUnbuilt = error.code === 'ERR_MODULE_NOT_FOUND' && /dist.cli\.js' imported/.test(error.message)
        fail(isUnbuilt ? 'dist is not built: run npm run build.' : error.stack)
      }
    )
}

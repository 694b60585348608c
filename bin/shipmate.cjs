#!/usr/bin/env node
/*
 * Starts the command line, or says in one sentence that this Node is too old for it.
 * Old syntax throughout, so that an old Node gets as far as saying so.
 */
'use strict'
var needed = [22, 19]
var found = process.versions.node.split('.').map(Number)

// The sidecar's own words are in a bundle of their own: in its container every megabyte counts, and loading ES modules takes ten.
var agentWords = ['sidecar', 'install-agent', 'init']

function start(argv) {
  if (agentWords.indexOf(argv[0]) !== -1) return require('../dist/agent.cjs').run(argv)
  return import('../dist/cli.js').then(function (cli) {
    return cli.main(argv)
  })
}

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
  new Promise(function (resolve) {
    resolve(start(process.argv.slice(2)))
  }).then(
    function (code) {
      process.exitCode = code
    },
    function (error) {
      var isUnbuilt =
        /MODULE_NOT_FOUND$/.test(error.code) && /dist.(cli\.js' imported|agent\.cjs'\n)/.test(error.message)
      fail(isUnbuilt ? 'dist is not built: run npm run build.' : error.stack)
    }
  )
}

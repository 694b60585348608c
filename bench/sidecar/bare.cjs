// What the agent is compared to: a bare node:http server, which loads nothing else until it is asked to.
//
// GET /           answers
// GET /spawn      spawns `true`, answers when it has ended, with the milliseconds that took
// GET /every      from now on spawns five every 2 s
'use strict'
const { createServer } = require('node:http')

const spawnOne = ended => {
  const { spawn } = require('node:child_process')
  const began = performance.now()
  spawn('true', { stdio: 'ignore' }).once('exit', () => ended(performance.now() - began))
}

const pages = {
  '/': answer => answer('ok'),
  '/spawn': answer => spawnOne(answer),
  '/every': answer => {
    setInterval(() => {
      for (let i = 0; i < 5; i++) spawnOne(() => {})
    }, 2_000)
    answer('ok')
  }
}

const server = createServer((request, response) => pages[request.url](text => response.end(String(text))))
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ msg: 'listening', public: `127.0.0.1:${server.address().port}` })}\n`)
})

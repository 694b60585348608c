// An agent for the tests of supervise: says when it starts, answers GET /livez as it is told, and ends as it is told.
const { appendFileSync, openSync, rmSync } = require('node:fs')
const { createServer } = require('node:http')
const { parseArgs } = require('node:util')

const { values } = parseArgs({
  options: {
    'state-dir': { type: 'string' },
    answers: { type: 'string', default: '' },
    after: { type: 'string', default: '0' }
  }
})
const dir = values['state-dir']
const say = text => appendFileSync(`${dir}/said`, `${text}\n`)

for (const signal of ['SIGTERM', 'SIGINT']) {
  process.on(signal, () => {
    say(signal)
    process.exit(7)
  })
}
process.on('SIGHUP', () => {
  say('SIGHUP')
  process.exit(0)
})

// How each call is answered; the last way goes on.
const answers = values.answers.split(',')
const server = createServer((request, response) => {
  say(`${request.method} ${request.url}`)
  const answer = answers.length > 1 ? answers.shift() : answers[0]
  if (answer === 'hang') return
  if (answer === 'close') return request.socket.destroy()
  response.writeHead(Number(answer)).end()
})
rmSync(`${dir}/control.sock`, { force: true })
setTimeout(() => {
  // By a short name, however long the folder's is.
  if (values.answers) server.listen(`/proc/self/fd/${openSync(dir, 'r')}/control.sock`)
}, Number(values.after))
setInterval(() => undefined, 1000)
say(`start ${process.pid} ${process.ppid} ${process.env.SHIPMATE_DRAIN ?? 'no'}`)

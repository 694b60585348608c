import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseOptions } from '../../sidecar/options.ts'

const needed = ['--config', 'lifecycle.yaml', '--state-dir', 'state']

function optionsOf(argv: string[], env: Record<string, string> = { POD_UID: 'uid' }) {
  const asked = parseOptions(argv, env)
  if (asked.command !== 'run') throw new Error(`it is asked to ${asked.command}`)
  return asked.options
}

describe('the command line of the sidecar', () => {
  it('means its paths from where it was called, whatever folder they are used from', () => {
    const options = optionsOf([...needed, '--auth', 'token', '--token-file', 'token', '--tls-dir', '../tls'])
    expect(options).toMatchObject({
      config: resolve('lifecycle.yaml'),
      stateDir: resolve('state'),
      tokenFile: resolve('token'),
      tlsDir: resolve('../tls'),
    })
    expect(parseOptions(['prestop', '--state-dir', 'state'], {})).toMatchObject({ stateDir: resolve('state') })
  })

  it('opens its ports to the pod, and with --auth none to this machine alone', () => {
    expect(optionsOf(needed)).toMatchObject({ listen: ':7443', publicListen: ':7080' })
    expect(optionsOf([...needed, '--auth', 'none'])).toMatchObject({
      listen: '127.0.0.1:7443',
      publicListen: '127.0.0.1:7080',
    })
    expect(optionsOf([...needed, '--auth', 'none', '--public-listen', ':7080']).publicListen).toBe(':7080')
  })

  it.each([
    [['--confg', 'x'], 'unknown option "--confg"; did you mean "--config"?'],
    [['--state-dirs=x'], 'unknown option "--state-dirs"; did you mean "--state-dir"?'],
    [['-q'], /^unknown option "-q"; there are --config, --state-dir, /],
    [['--config', 'x', '--state-dir', ''], '--state-dir is empty'],
    [['--config=', '--state-dir', 'x'], '--config is empty'],
    [['--config', 'x'], '--state-dir is missing'],
    [[...needed, '--auth', 'nobody'], '--auth is "nobody"; it must be one of mtls, token, none'],
    [[...needed, '--drain-timeout', '5'], '--drain-timeout is "5"; it must be a duration, as 30s or 1m30s'],
    [['prestops'], 'unknown command "prestops"; there is prestop'],
  ])('%j is refused, with what would be accepted', (argv, sentence) => {
    expect(() => parseOptions(argv, { POD_UID: 'uid' })).toThrow(sentence)
  })

  it.each(['mtls', 'token'])('--auth %s without a POD_UID is refused, as every call would be', auth => {
    for (const env of [{}, { POD_UID: '' }]) {
      expect(() => optionsOf([...needed, '--auth', auth, '--tls-dir', 'x', '--token-file', 'y'], env)).toThrow(
        `--auth ${auth} needs the variable POD_UID`,
      )
    }
    expect(optionsOf([...needed, '--auth', 'none'], {}).pod.uid).toBe('')
  })
})

/**
 * What the demo says: a heading for each step, the command that would do the same, and a line for each thing that happens, with the time since the beginning.
 *
 * Guarantees: in a pipe, and with NO_COLOR, there are no escape sequences and no line is written over; progress is a few lines there.
 */
import type { WriteStream } from 'node:tty'
import { stripVTControlCharacters, styleText } from 'node:util'

export interface Screen {
  /** A step begins. */
  heading(text: string): void
  /** What a person would type. */
  command(text: string): void
  /** Something has happened. @param what one word, as the name of a state */
  event(what: string, text: string): void
  /** It goes on; written over by what comes next, where that is possible. */
  progress(what: string, percent: number, text: string): void
  /** Something did not happen. */
  failure(text: string): void
  line(text?: string): void
  /** Nothing is said from now on. */
  close(): void
}

type Style = Parameters<typeof styleText>[0]

const barWidth = 24
/** Where lines are not written over, progress is told at each of these steps, in percent. */
const stride = 25
const column = 14

/** @param now milliseconds since the beginning */
export function createScreen(stream: NodeJS.WriteStream, now: () => number): Screen {
  const isLive = stream.isTTY === true
  const styled = (style: Style, text: string) => styleText(style, text, { stream })
  let isOpen = false
  let isClosed = false
  let told = -1

  const write = (text: string) => {
    if (isClosed) return
    if (isOpen) stream.write('\r\u001b[K')
    isOpen = false
    stream.write(`${text}\n`)
  }
  const row = (what: string, style: Style, text: string) => {
    const time = styled('dim', `${(now() / 1000).toFixed(1).padStart(6)} s`)
    return `${time}  ${styled(style, what.padEnd(column))}${text}`.trimEnd()
  }
  return {
    heading: text => write(`\n${styled('bold', text)}`),
    command: text => write(styled('cyan', `          $ ${text}`)),
    event(what, text) {
      told = -1
      write(row(what, 'green', text))
    },
    progress(what, percent, text) {
      const step = Math.floor(percent / stride)
      if (isClosed || (!isLive && step <= told)) return
      told = step
      const full = Math.round((barWidth * percent) / 100)
      const bar = `[${'#'.repeat(full)}${'.'.repeat(barWidth - full)}]`
      const line = row(what, 'green', `${bar} ${String(percent).padStart(3)} %  ${text}`)
      if (!isLive) return write(line)
      // A line that is broken cannot be written over.
      const isWide = stripVTControlCharacters(line).length >= ((stream as WriteStream).columns ?? 80)
      stream.write(`\r\u001b[K${isWide ? row(what, 'green', `${percent} %`) : line}`)
      isOpen = true
    },
    failure: text => write(row('failed', 'red', text)),
    line: (text = '') => write(text),
    close() {
      if (isOpen) stream.write('\n')
      isClosed = true
    },
  }
}

import { describe, expect, it } from 'vitest'
import { plainProgress, terminalProgress } from './progress.ts'
import { tableOf } from './results.ts'

/** The lines that a terminal shows; understands cursor up and clear. */
function screen(columns = 80) {
  const lines: string[] = ['']
  const write = (text: string) => {
    for (const part of text.split(/(.\[\d+[AJ]|\n)/)) {
      const up = /^.\[(\d+)A$/.exec(part)
      if (up) lines.splice(lines.length - 1 - Number(up[1]), Number(up[1]))
      else if (part === '\n') lines.push('')
      else if (!part.startsWith('\u001b')) {
        lines[lines.length - 1] += part
        expect(lines.at(-1)!.length, 'a line wraps').toBeLessThan(columns)
      }
    }
  }
  return { write, columns: () => columns, lines: () => lines.slice(0, -1) }
}

describe('progress of a bulk command', () => {
  it('PLUS-13 is a line for every change without a terminal', () => {
    let out = ''
    const progress = plainProgress((text) => {
      out += text
    })
    progress.working('shop/a', 'requested')
    progress.ended({ key: 'shop/a', is: 'done', message: 'grown to 2Gi' })
    progress.ended({ key: 'shop/b', is: 'failed', message: 'no\nroom \u001b[31m' })
    expect(out).toBe('shop/a: requested\nshop/a: grown to 2Gi\nshop/b: FAILED: no room  [31m\n')
  })

  it('PLUS-13 is redrawn in place below finished claims on a terminal', () => {
    const terminal = screen()
    const progress = terminalProgress(terminal, 3)
    progress.working('shop/a', 'requested')
    progress.working('shop/b', 'requested')
    expect(terminal.lines()).toEqual(['  shop/a: requested', '  shop/b: requested', '  0 of 3 done'])
    progress.working('shop/a', 'the driver is expanding the volume')
    progress.ended({ key: 'shop/b', is: 'failed', message: 'no room' })
    expect(terminal.lines()).toEqual([
      'shop/b: FAILED: no room',
      '  shop/a: the driver is expanding the volume',
      '  1 of 3 done',
    ])
    progress.ended({ key: 'shop/a', is: 'done', message: 'grown' })
    expect(terminal.lines()).toEqual(['shop/b: FAILED: no room', 'shop/a: grown'])
  })

  it('PLUS-13 truncates lines in a narrow terminal', () => {
    const terminal = screen(30)
    const progress = terminalProgress(terminal, 1)
    progress.working('shop/a', 'x'.repeat(200))
    progress.working('shop/a', 'y'.repeat(200))
    expect(terminal.lines()).toHaveLength(2)
    expect(terminal.lines()[0]).toMatch(/^ {2}shop\/a: y+…$/)
  })

  it('PLUS-13 prints results as a table', () => {
    expect(
      tableOf([
        ['CLAIM', 'WHY'],
        ['a', ''],
        ['a-long-one', 'because it is'],
      ]),
    ).toBe('CLAIM       WHY\na\na-long-one  because it is\n')
  })
})

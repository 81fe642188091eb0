import { describe, expect, it } from 'vitest'
import { createPlainProgress, createTerminalProgress } from './progress.ts'

/** Emulates a terminal with the control sequences for cursor up and clear. */
function createScreen(columns = 80) {
  const lines: string[] = ['']
  const write = (text: string) => {
    for (const token of text.split(/(.\[\d+[AJ]|\n)/)) {
      const up = /^.\[(\d+)A$/.exec(token)
      if (up) lines.splice(lines.length - 1 - Number(up[1]), Number(up[1]))
      else if (token === '\n') lines.push('')
      else if (!token.startsWith('\u001b')) {
        lines[lines.length - 1] += token
        expect(lines.at(-1)!.length, 'a line wraps').toBeLessThan(columns)
      }
    }
  }
  return { write, columns: () => columns, lines: () => lines.slice(0, -1) }
}

function createManualTimer() {
  let nowMs = 0
  return {
    monotonicMs: () => nowMs,
    advance(ms: number) {
      nowMs += ms
    },
  }
}

describe('progress of a bulk command', () => {
  it('PLUS-13 prints a line for every change without a terminal', () => {
    let output = ''
    const write = (text: string) => {
      output += text
    }
    const progress = createPlainProgress(write, 2, createManualTimer())
    progress.update('shop/a', 'requested')
    progress.complete({ key: 'shop/a', is: 'done', message: 'grown to 2Gi' })
    progress.complete({ key: 'shop/b', is: 'failed', message: 'no\nroom \u001b[31m' })
    expect(output).toBe('shop/a: requested\nshop/a: grown to 2Gi\nshop/b: FAILED: no room  [31m\n')
  })

  it('SYS-12 prints counts, rate and remaining time every ten seconds without a terminal', () => {
    const lines: string[] = []
    const timer = createManualTimer()
    const progress = createPlainProgress((text) => void lines.push(...text.trimEnd().split('\n')), 4, timer)
    for (const key of ['shop/a', 'shop/b', 'shop/c', 'shop/d']) {
      timer.advance(5_000)
      progress.complete({ key, is: 'done', message: 'grown' })
    }
    expect(lines).toEqual([
      'shop/a: grown',
      'shop/b: grown',
      '2 of 4 done, 0.20/s, about 10 s left',
      'shop/c: grown',
      'shop/d: grown',
      '4 of 4 done',
    ])
  })

  it('PLUS-13 redraws the claims in progress below finished claims on a terminal', () => {
    const terminal = createScreen()
    const timer = createManualTimer()
    const progress = createTerminalProgress(terminal, 3, timer)
    progress.update('shop/a', 'requested')
    progress.update('shop/b', 'requested')
    expect(terminal.lines()).toEqual(['  shop/a: requested', '  shop/b: requested', '  0 of 3 done'])
    progress.update('shop/a', 'the driver is expanding the volume')
    timer.advance(4_000)
    progress.complete({ key: 'shop/b', is: 'failed', message: 'no room' })
    expect(terminal.lines()).toEqual([
      'shop/b: FAILED: no room',
      '  shop/a: the driver is expanding the volume',
      '  1 of 3 done, 0.25/s, about 8 s left',
    ])
    progress.complete({ key: 'shop/a', is: 'done', message: 'grown' })
    expect(terminal.lines()).toEqual(['shop/b: FAILED: no room', 'shop/a: grown'])
  })

  it('PLUS-13 truncates lines in a narrow terminal', () => {
    const terminal = createScreen(30)
    const progress = createTerminalProgress(terminal, 1, createManualTimer())
    progress.update('shop/a', 'x'.repeat(200))
    progress.update('shop/a', 'y'.repeat(200))
    expect(terminal.lines()).toHaveLength(2)
    expect(terminal.lines()[0]).toMatch(/^ {2}shop\/a: y+…$/)
  })
})

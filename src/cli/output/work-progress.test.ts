import { describe, expect, it } from 'vitest'
import { createWorkProgress } from './work-progress.ts'

function startWork(options: { readonly total?: number; readonly unit?: string; readonly columns?: number }) {
  let nowMs = 0
  const texts: string[] = []
  const { columns } = options
  const progress = createWorkProgress({
    title: 'Reading',
    unit: options.unit ?? 'bytes',
    ...(options.total === undefined ? {} : { total: options.total }),
    clock: { monotonicMs: () => nowMs },
    output: {
      write: (text) => void texts.push(text),
      ...(columns === undefined ? {} : { columns: () => columns }),
    },
  })
  return {
    progress,
    texts,
    advance(ms: number) {
      nowMs += ms
    },
  }
}

describe('progress of long work', () => {
  it('SYS-12 prints a plain line with rate and remaining time every ten seconds without a terminal', () => {
    const { progress, texts, advance } = startWork({ total: 400 * 2 ** 20 })
    for (let second = 0; second < 25; second++) {
      advance(1_000)
      progress.add(10 * 2 ** 20)
    }
    progress.finish()
    expect(texts).toEqual([
      'Reading: 25%, 100Mi of 400Mi, 10Mi/s, about 30 s left\n',
      'Reading: 50%, 200Mi of 400Mi, 10Mi/s, about 20 s left\n',
    ])
  })

  it('SYS-12 prints nothing without a terminal if the work is short', () => {
    const { progress, texts, advance } = startWork({ total: 10 })
    advance(9_999)
    progress.set(10)
    progress.finish()
    expect(texts).toEqual([])
  })

  it('SYS-12 redraws one line on a terminal at most ten times a second, and removes it', () => {
    const { progress, texts, advance } = startWork({ total: 100, unit: 'pages', columns: 80 })
    for (let index = 0; index < 50; index++) {
      progress.set(index)
      advance(2)
    }
    advance(4_900)
    progress.set(50)
    progress.finish()
    expect(texts).toEqual([
      '\r\u001b[2KReading [░░░░░░░░░░░░░░░░░░░░] 0%, 0 of 100 pages',
      '\r\u001b[2KReading [██████████░░░░░░░░░░] 50%, 50 of 100 pages, 10/s, about 5 s left',
      '\r\u001b[2K',
    ])
  })

  it('SYS-12 shows the amount and the rate if the total is not known', () => {
    const { progress, texts, advance } = startWork({ columns: 40 })
    advance(1_000)
    progress.set(2 ** 20)
    expect(texts).toEqual(['\r\u001b[2KReading 1Mi, 1Mi/s'])
  })
})

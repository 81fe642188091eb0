import { describe, expect, it } from 'vitest'
import { silentLog } from '../../base/log.ts'
import { manualClock } from '../../base/manual-clock.ts'
import { type AuditSink, createAuditLog } from './audit-log.ts'

/** Copies the text of a batch, because the batch shares its bytes with the buffer. */
const textOf = (lines: Uint8Array): string => Buffer.from(lines).toString('utf8')

function createLogOn(sink: Partial<AuditSink> = {}) {
  const texts: string[] = []
  const clock = manualClock()
  const write = async (lines: Uint8Array) => void texts.push(textOf(lines))
  const log = createAuditLog({ sink: { write, close: async () => {}, ...sink }, clock, log: silentLog })
  return { log, clock, texts }
}

describe('the audit log', () => {
  it('SYS-21 writes lines in batches, off the request path', async () => {
    const { log, clock, texts } = createLogOn()
    log.write('a\n')
    log.write('b\n')
    expect(texts).toEqual([])
    await clock.advance(100)
    expect(texts).toEqual(['a\nb\n'])
  })

  it('SYS-21 writes the buffered lines before it closes', async () => {
    const { log, texts } = createLogOn()
    log.write('a\n')
    await log.close()
    expect(texts).toEqual(['a\n'])
  })

  it('SYS-21 keeps lines while the disk is full and writes them in order afterwards', async () => {
    const writtenTexts: string[] = []
    let isFull = true
    const { log, clock } = createLogOn({
      write: async (lines) => {
        if (isFull) throw new Error('ENOSPC: no space left on device')
        writtenTexts.push(textOf(lines))
      },
    })
    log.write('a\n')
    await clock.advance(100)
    log.write('b\n')
    expect(log.stats()).toEqual({ events: 2, errors: 1, dropped: 0 })
    isFull = false
    await clock.advance(1_000)
    expect(writtenTexts).toEqual(['a\nb\n'])
  })

  it('SYS-21 counts the events that do not fit in the buffer, and records their number when writing works again', async () => {
    const writtenTexts: string[] = []
    let isFull = true
    const { log, clock } = createLogOn({
      write: async (lines) => {
        if (isFull) throw new Error('ENOSPC: no space left on device')
        writtenTexts.push(textOf(lines))
      },
    })
    const line = `${'x'.repeat(1024 * 1024 - 1)}\n`
    for (let index = 0; index < 19; index++) log.write(line)
    await clock.advance(100)
    expect(log.stats()).toEqual({ events: 19, errors: 1, dropped: 3 })
    isFull = false
    await clock.advance(1_000)
    const lines = writtenTexts.join('').split('\n').slice(0, -1)
    expect(lines).toHaveLength(17)
    expect(JSON.parse(lines.at(-1)!)).toMatchObject({
      kind: 'Event',
      apiVersion: 'audit.k8s.io/v1',
      annotations: {
        'audit.stowage.dev/dropped-events': '3',
        'audit.stowage.dev/reason': 'ENOSPC: no space left on device',
      },
    })
    log.write('after\n')
    await clock.advance(100)
    expect(writtenTexts.at(-1)).toBe('after\n')
  })
})

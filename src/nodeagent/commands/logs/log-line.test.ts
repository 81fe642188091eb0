import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLineSplitter, LOG_LINE_BYTES_MAX, parseLogLine } from './log-line.ts'

const START_MS = Date.parse('2026-01-05T09:30:00.125Z')

describe('log lines', () => {
  it('SYS-26 have the format of the Container Runtime Interface', () => {
    const splitter = createLineSplitter('stderr')
    expect(splitter.add(Buffer.from('hello\nworld'), START_MS).toString()).toBe(
      '2026-01-05T09:30:00.125000000Z stderr F hello\n',
    )
    expect(splitter.end(START_MS).toString()).toBe('2026-01-05T09:30:00.125000000Z stderr P world\n')
  })

  it('SYS-26 restore any output, however it was split into chunks', () => {
    const longLine = Buffer.alloc(LOG_LINE_BYTES_MAX + 5, 'x')
    const output = fc.array(fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.constant(longLine)), { maxLength: 8 })
    fc.assert(
      fc.property(output, (chunks) => {
        const splitter = createLineSplitter('stdout')
        const log = Buffer.concat([...chunks.map((chunk) => splitter.add(chunk, START_MS)), splitter.end(START_MS)])
        const restored: Buffer[] = []
        for (let start = 0; start < log.length; ) {
          const end = log.indexOf(0x0a, start)
          const line = parseLogLine(log.subarray(start, end))!
          expect(line.content.length).toBeLessThanOrEqual(LOG_LINE_BYTES_MAX)
          restored.push(line.content, Buffer.from(line.isPart ? '' : '\n'))
          start = end + 1
        }
        expect(Buffer.concat(restored).equals(Buffer.concat(chunks))).toBe(true)
      }),
      { seed: 1 },
    )
  })
})

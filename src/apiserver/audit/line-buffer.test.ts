import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLineBuffer, type LineBatch } from './line-buffer.ts'

const textOf = ({ chunks }: LineBatch): string => Buffer.concat(chunks).toString('utf8')

describe('the line buffer', () => {
  it('SYS-21 returns the lines in their order through writes that succeed and fail', () => {
    const line = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 50 }),
      fc.integer({ min: 10, max: 100 }).map((length) => 'é'.repeat(length)),
    )
    const step = fc.record({
      lines: fc.array(line, { maxLength: 8 }),
      added: fc.array(line, { maxLength: 3 }),
      fails: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 8 }), (steps) => {
        const buffer = createLineBuffer(Number.POSITIVE_INFINITY, 64)
        let expectedText = ''
        let lineCount = 0
        let writtenText = ''
        const add = (lines: string[]) => {
          for (const text of lines) {
            expectedText += `${text}\n`
            lineCount++
            expect(buffer.add(`${text}\n`)).toBe(true)
          }
        }
        for (const { lines, added, fails } of steps) {
          add(lines)
          const batchLines = lineCount
          const batch = buffer.takeBatch()
          const text = textOf(batch)
          add(added)
          expect(textOf(batch)).toBe(text)
          if (fails) batch.putBack()
          else {
            batch.release()
            writtenText += text
            lineCount -= batchLines
          }
          expect(buffer.lineCount).toBe(lineCount)
        }
        writtenText += textOf(buffer.takeBatch())
        expect(writtenText).toBe(Buffer.from(expectedText).toString('utf8'))
      }),
      { seed: 1, numRuns: 100 },
    )
  })

  it('SYS-21 counts the lines of a batch until it is written', () => {
    const buffer = createLineBuffer(10)
    expect([buffer.add('12345\n'), buffer.add('12345\n')]).toEqual([true, false])
    const batch = buffer.takeBatch()
    expect(buffer.add('12345\n')).toBe(false)
    batch.release()
    expect(buffer.add('12345\n')).toBe(true)
  })

  it('SYS-21 counts the bytes of a line, not its characters', () => {
    const buffer = createLineBuffer(10)
    expect(buffer.add(`${'é'.repeat(5)}\n`)).toBe(false)
    expect(buffer.add(`${'é'.repeat(4)}\n`)).toBe(true)
  })
})

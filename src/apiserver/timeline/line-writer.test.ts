import { expect, it } from 'vitest'
import { LineWriter } from './line-writer.ts'

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8')

function written(write: (lines: LineWriter) => void): string {
  const lines = new LineWriter()
  write(lines)
  return textOf(lines.take())
}

const TEXTS = ['', 'plain text ~', 'a "quoted" \\ text', 'line\nfeed', 'é → 😀', '\u007f', '\ud800', 'x'.repeat(20_000)]

it('PLUS-6 a line writer quotes texts as JSON does', () => {
  for (const text of TEXTS) expect(written((lines) => lines.quoted(text))).toBe(JSON.stringify(text))
})

it('PLUS-6 a line writer formats numbers as JSON does', () => {
  const integers = [0, 7, 10, 99, 1_000, 1_795_060_985_133, Number.MAX_SAFE_INTEGER]
  for (const value of integers) expect(written((lines) => lines.integer(value))).toBe(JSON.stringify(value))
  const numbers = [...integers, 0.5, 0.001, 0.1, 12.34, 9.003, 8.852, 0.0004, 1 / 3, -1.5, -0, 1e21, 1e-7, 2 ** 53]
  for (const value of numbers) expect(written((lines) => lines.number(value))).toBe(JSON.stringify(value))
  for (let thousandths = 0; thousandths < 3_000; thousandths++)
    expect(written((lines) => lines.number(thousandths / 1_000))).toBe(String(thousandths / 1_000))
})

it('PLUS-6 a line writer starts records with times before and after zero', () => {
  expect(written((lines) => lines.start('u-1', 7, 1_795_060_985_133))).toBe('["u-1",7,1795060985133')
  expect(written((lines) => lines.start('a "1"', 12, -40))).toBe('["a \\"1\\"",12,-40')
})

it('PLUS-6 a line writer returns texts that are next to each other in memory, until a block is full', () => {
  const lines = new LineWriter()
  let end: { buffer: ArrayBufferLike; position: number } | undefined
  let blocks = 0
  let texts = ''
  const results: Uint8Array[] = []
  for (let index = 0; index < 2_000; index++) {
    lines.ascii(`${index} `)
    lines.ascii('x'.repeat(500))
    const bytes = lines.take()
    if (end?.buffer !== bytes.buffer) blocks++
    else expect(bytes.byteOffset).toBe(end.position)
    end = { buffer: bytes.buffer, position: bytes.byteOffset + bytes.length }
    results.push(bytes)
    texts += `${index} ${'x'.repeat(500)}`
  }
  expect(blocks).toBeGreaterThan(4)
  expect(blocks).toBeLessThan(12)
  expect(Buffer.concat(results).toString()).toBe(texts)
})

it('PLUS-6 a line writer returns each text once, in memory that it does not use again', () => {
  const lines = new LineWriter()
  lines.ascii('first')
  const first = lines.take()
  for (const text of TEXTS) lines.quoted(text)
  lines.bytes(new Uint8Array(500_000).fill(0x61))
  expect(textOf(lines.take())).toBe(TEXTS.map((text) => JSON.stringify(text)).join('') + 'a'.repeat(500_000))
  lines.ascii('last')
  expect(textOf(lines.take())).toBe('last')
  expect(textOf(first)).toBe('first')
})

import { describe, expect, it } from 'vitest'
import { parseSelectors } from './parse-selectors.ts'

const parse = (parameters: Record<string, string>) => parseSelectors(new URLSearchParams(parameters))
const requirements = (count: number, text: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => text(index)).join(',')

describe('parseSelectors', () => {
  it('SYS-19 shares the parsed selectors of equal texts', () => {
    const parameters = { labelSelector: 'app=web,tier in (a,b)', fieldSelector: 'metadata.name=a' }
    const [first, second] = [parse(parameters), parse(parameters)]
    expect(second.labelSelector).toBe(first.labelSelector)
    expect(second.fieldSelector).toBe(first.fieldSelector)
    expect(parse({ labelSelector: 'app=other' }).labelSelector).not.toBe(first.labelSelector)
  })

  it.each([
    ['labelSelector', (index: number) => `label-${index}=a`],
    ['fieldSelector', (index: number) => `metadata.name!=a${index}`],
  ])('SYS-19 rejects a %s with more than 100 requirements or too many characters', (parameter, text) => {
    expect(() => parse({ [parameter]: requirements(100, text) })).not.toThrow()
    expect(() => parse({ [parameter]: requirements(101, text) })).toThrow(
      expect.objectContaining({ code: 400, message: `${parameter} has 101 requirements; the maximum is 100` }),
    )
    expect(() => parse({ [parameter]: 'a'.repeat(20_000) })).toThrow(
      expect.objectContaining({ code: 400, message: `${parameter} has 20000 characters; the maximum is 16384` }),
    )
  })

  it('SYS-10 rejects an invalid selector', () => {
    expect(() => parse({ labelSelector: 'a in' })).toThrow(expect.objectContaining({ code: 400 }))
  })
})

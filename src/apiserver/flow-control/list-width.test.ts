import { describe, expect, it } from 'vitest'
import type { ResourceRequest } from '../http/route.ts'
import { createListWidths } from './list-width.ts'

const CLAIMS: ResourceRequest = {
  is: 'resource',
  verb: 'list',
  group: '',
  version: 'v1',
  plural: 'persistentvolumeclaims',
  namespace: 'default',
  name: '',
  subresource: '',
}
const query = (text = '') => new URLSearchParams(text)

describe('createListWidths', () => {
  it('SYS-19 returns the maximum for a list of unknown size, and then the width of the last list', () => {
    const widths = createListWidths()
    expect(widths.widthOf(CLAIMS, query())).toBe(Number.POSITIVE_INFINITY)
    widths.recordBytes(CLAIMS, query(), 250_000)
    expect(widths.widthOf(CLAIMS, query())).toBe(3)
    expect(widths.widthOf(CLAIMS, query('limit=10'))).toBe(Number.POSITIVE_INFINITY)
  })

  it('SYS-19 keeps the width of the whole collection after a list with a selector', () => {
    const widths = createListWidths()
    widths.recordBytes(CLAIMS, query(), 250_000)
    for (const selector of ['labelSelector=a%3Db', 'fieldSelector=metadata.name%3Da']) {
      widths.recordBytes(CLAIMS, query(selector), 100)
      expect(widths.widthOf(CLAIMS, query())).toBe(3)
      expect(widths.widthOf(CLAIMS, query(selector))).toBe(3)
    }
  })
})

import { describe, expect, it } from 'vitest'
import type { Type } from '../schema.ts'
import { ALL_KINDS } from './index.ts'

describe('the fields of all kinds', () => {
  it('SYS-2 have a description for kubectl explain', () => {
    const undescribedFields: string[] = []
    const visit = (type: Type, path: string): void => {
      if (type.is === 'list') visit(type.item, path)
      if (type.is === 'map') visit(type.value, path)
      if (type.is !== 'object') return
      if (!type.doc) undescribedFields.push(type.name)
      for (const [name, field] of Object.entries(type.fields)) {
        if (!field.doc) undescribedFields.push(`${path}.${name}`)
        visit(field.type, `${path}.${name}`)
      }
    }
    for (const kind of ALL_KINDS) visit(kind.type, kind.kind)
    expect(undescribedFields).toEqual([])
  })
})

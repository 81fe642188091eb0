import fc from 'fast-check'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { formatYaml } from './yaml.ts'

it('formats an object in block style, in the order of its keys, and quotes strings that could be read as another type', () => {
  const object = {
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data', labels: { 'app.kubernetes.io/name': 'shop' }, annotations: { flag: 'true', empty: '' } },
    spec: {
      accessModes: ['ReadWriteOnce'],
      limits: [],
      items: [{ key: 'a', values: ['x'] }],
      storage: '10Gi',
      count: 3,
    },
    text: 'first\nsecond\n',
  }
  expect(formatYaml(object)).toBe(`kind: PersistentVolumeClaim
metadata:
  name: data
  labels:
    app.kubernetes.io/name: shop
  annotations:
    flag: "true"
    empty: ""
spec:
  accessModes:
  - ReadWriteOnce
  limits: []
  items:
  - key: a
    values:
    - x
  storage: "10Gi"
  count: 3
text: |
  first
  second
`)
})

it('SYS-13 formats every object so that a YAML parser reads it back', () => {
  const value = fc.letrec((tie) => ({
    node: fc.oneof(
      { maxDepth: 4 },
      fc.string(),
      fc.string({ unit: 'grapheme' }),
      fc.constantFrom(
        'true',
        'null',
        '1e3',
        '0x1f',
        '10Gi',
        '- a',
        'a: b',
        'a #b',
        ' lead',
        'x:',
        'two\nlines',
        '\n',
        '<img onerror>',
        '2026-11-18T00:00:00Z',
      ),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie('node'), { maxLength: 4 }),
      fc.dictionary(fc.string({ minLength: 1 }), tie('node'), { maxKeys: 4 }),
    ),
  })).node
  fc.assert(
    fc.property(fc.dictionary(fc.string({ minLength: 1 }), value, { minKeys: 1, maxKeys: 4 }), (object) => {
      expect(parse(formatYaml(object), { maxAliasCount: 0 })).toEqual(parse(JSON.stringify(object)))
    }),
  )
})

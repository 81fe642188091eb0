import { describe, expect, it } from 'vitest'
import { deepFreeze } from '../base/freeze.ts'
import { applyDefaults, withDefaults } from './defaults.ts'
import { int32, list, map, object, opt, string } from './schema.ts'

const port = object('test.Port', 'A port.', { protocol: opt(1, string, 'Its protocol.', { default: 'TCP' }) })
const type = object('test.Service', 'A service.', {
  name: opt(1, string, 'Its name.'),
  replicas: opt(2, int32, 'Number of replicas.', { default: 1 }),
  ports: opt(3, list(port), 'Its ports.'),
  named: opt(4, map(port), 'Ports by name.'),
  main: opt(5, port, 'The main port.'),
})

const PARTIAL = deepFreeze({
  name: 'a',
  ports: [{ protocol: 'UDP' }, {}],
  named: { a: { protocol: 'UDP' }, b: {} },
  main: {},
})
const COMPLETE = {
  name: 'a',
  replicas: 1,
  ports: [{ protocol: 'UDP' }, { protocol: 'TCP' }],
  named: { a: { protocol: 'UDP' }, b: { protocol: 'TCP' } },
  main: { protocol: 'TCP' },
}

describe('withDefaults', () => {
  it('returns a copy with the missing defaults, and shares the parts that have theirs', () => {
    const result = withDefaults(type, PARTIAL)
    expect(result).toEqual(COMPLETE)
    expect(result.ports[0]).toBe(PARTIAL.ports[0])
    expect(result.named.a).toBe(PARTIAL.named.a)
  })

  it('returns the same object if no default is missing', () => {
    expect(withDefaults(type, COMPLETE)).toBe(COMPLETE)
  })

  it('does not create objects that are missing', () => {
    expect(withDefaults(type, {})).toEqual({ replicas: 1 })
  })
})

describe('applyDefaults', () => {
  it('changes the object itself', () => {
    const target = { ...PARTIAL }
    applyDefaults(type, target)
    expect(target).toEqual(COMPLETE)
  })
})

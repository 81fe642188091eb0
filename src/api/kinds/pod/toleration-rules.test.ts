import { describe, expect, it } from 'vitest'
import { tryCreate } from '../kind.fixture.ts'
import { aPod } from './pod.fixture.ts'
import { podKind } from './pod.ts'

const errorsOf = (spec: object) => tryCreate(podKind, aPod({ spec })).errors

describe('validateTolerations', () => {
  it.each([
    [
      { operator: 'Equal', value: 'x' },
      'operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match all values and all keys"',
    ],
    [
      { key: 'a', operator: 'Exists', value: 'x' },
      'operator: Invalid value: "x": value must be empty when `operator` is \'Exists\'',
    ],
    [{ key: 'a', operator: 'Like' }, 'operator: Unsupported value: "Like": supported values: "Equal", "Exists"'],
    [
      { key: 'a', operator: 'Gt', value: 'many' },
      'value: Invalid value: "many": must be a valid decimal integer in canonical form',
    ],
    [
      { key: 'a', effect: 'Never' },
      'effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
    ],
    [
      { key: 'a', effect: 'NoSchedule', tolerationSeconds: 5 },
      'effect: Invalid value: "NoSchedule": effect must be \'NoExecute\' when `tolerationSeconds` is set',
    ],
  ])('rejects %j', (toleration, message) => {
    expect(errorsOf({ tolerations: [toleration] })).toEqual([`spec.tolerations[0].${message}`])
  })

  it('accepts Exists without a key', () => {
    expect(errorsOf({ tolerations: [{ operator: 'Exists' }] })).toEqual([])
  })
})

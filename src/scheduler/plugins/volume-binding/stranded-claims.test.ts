import { describe, expect, it } from 'vitest'
import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import type { BoundClaim } from './pod-volumes.ts'
import { waysOut } from './stranded-claims.ts'

const classes = new Map(
  Object.entries({ late: 'WaitForFirstConsumer', soon: 'Immediate' }).map(([name, volumeBindingMode]) => [
    name,
    { metadata: { name }, provisioner: 'd.example.com', volumeBindingMode } as StorageClass,
  ]),
)

const bound = (name: string, host?: string, { isEphemeral = true, className = 'late' } = {}): BoundClaim => {
  const terms = [{ matchExpressions: [{ key: 'host', operator: 'In', values: [host] }] }]
  const nodeAffinity = host ? { nodeAffinity: { required: { nodeSelectorTerms: terms } } } : {}
  return {
    key: `ns/${name}`,
    name,
    isEphemeral,
    claim: { metadata: { name }, spec: { storageClassName: className } },
    volume: { metadata: { name }, spec: nodeAffinity },
  } as unknown as BoundClaim
}
const ways = (...claims: BoundClaim[]) => waysOut(claims, { classes } as never)

describe('what a pod can give back', () => {
  it('CAP-16 is all of its own volumes in a place', () => {
    expect(ways(bound('a', 'n1'), bound('b', 'n1'))).toEqual([['ns/a', 'ns/b']])
  })

  it('CAP-16 is only those in the other places, where they are in several; and all of them at last', () => {
    expect(ways(bound('a', 'n1'), bound('b', 'n2'), bound('c', 'n1'))).toEqual([
      ['ns/b'],
      ['ns/a', 'ns/c'],
      ['ns/a', 'ns/c', 'ns/b'],
    ])
  })

  it('CAP-16 is nothing that others made, that is reached from everywhere, or that waited for no pod', () => {
    const data = bound('data', 'n1', { isEphemeral: false })
    const soon = bound('soon', 'n1', { className: 'soon' })
    expect(ways(data, bound('net'), soon)).toEqual([])
  })
})

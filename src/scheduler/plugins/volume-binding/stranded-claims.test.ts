import { describe, expect, it } from 'vitest'
import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import type { BoundClaim } from './pod-volumes.ts'
import { recreatableClaims } from './stranded-claims.ts'

const classes = new Map(
  Object.entries({ delayed: 'WaitForFirstConsumer', immediate: 'Immediate' }).map(([name, volumeBindingMode]) => [
    name,
    { metadata: { name }, provisioner: 'd.example.com', volumeBindingMode } as StorageClass,
  ]),
)

const aBoundClaim = (name: string, host?: string, { isEphemeral = true, className = 'delayed' } = {}): BoundClaim => {
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
const findRecreatableClaims = (...claims: BoundClaim[]) => recreatableClaims(claims, { classes } as never)

describe('recreatableClaims', () => {
  it('CAP-16 returns all ephemeral claims if their volumes are on one node', () => {
    expect(findRecreatableClaims(aBoundClaim('a', 'n1'), aBoundClaim('b', 'n1'))).toEqual([['ns/a', 'ns/b']])
  })

  it('CAP-16 returns one set per node, which retains the claims of that node, and then all claims', () => {
    expect(findRecreatableClaims(aBoundClaim('a', 'n1'), aBoundClaim('b', 'n2'), aBoundClaim('c', 'n1'))).toEqual([
      ['ns/b'],
      ['ns/a', 'ns/c'],
      ['ns/a', 'ns/c', 'ns/b'],
    ])
  })

  it('CAP-16 excludes non-ephemeral claims, volumes without node affinity and classes with immediate binding', () => {
    const data = aBoundClaim('data', 'n1', { isEphemeral: false })
    const immediate = aBoundClaim('immediate', 'n1', { className: 'immediate' })
    expect(findRecreatableClaims(data, aBoundClaim('net'), immediate)).toEqual([])
  })
})

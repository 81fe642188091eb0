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

const bound = (name: string, host?: string, { isEphemeral = true, className = 'delayed' } = {}): BoundClaim => {
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
const recreatable = (...claims: BoundClaim[]) => recreatableClaims(claims, { classes } as never)

describe('the claims that can be deleted and created again', () => {
  it('CAP-16 are all ephemeral claims of one place', () => {
    expect(recreatable(bound('a', 'n1'), bound('b', 'n1'))).toEqual([['ns/a', 'ns/b']])
  })

  it('CAP-16 are those of all places but one, if there are several, and last all of them', () => {
    expect(recreatable(bound('a', 'n1'), bound('b', 'n2'), bound('c', 'n1'))).toEqual([
      ['ns/b'],
      ['ns/a', 'ns/c'],
      ['ns/a', 'ns/c', 'ns/b'],
    ])
  })

  it('CAP-16 exclude claims of the user, volumes without node affinity, and classes with immediate binding', () => {
    const data = bound('data', 'n1', { isEphemeral: false })
    const immediate = bound('immediate', 'n1', { className: 'immediate' })
    expect(recreatable(data, bound('net'), immediate)).toEqual([])
  })
})

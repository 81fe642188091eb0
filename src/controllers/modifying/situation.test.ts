import { describe, expect, it } from 'vitest'
import type { Subject } from '../volume-changes/index.ts'
import { isWithoutAttributes, MODIFYING_VOLUME } from './situation.ts'

type Claim = Subject['claim']

const subjectOf = (spec: Claim['spec'], status: Claim['status']): Subject => {
  const metadata = { name: 'data', namespace: 'shop', uid: 'u', resourceVersion: '1' }
  return {
    claim: { metadata, spec: { volumeName: 'v', ...spec }, status: { phase: 'Bound', ...status } },
    volume: { metadata: { ...metadata, name: 'v' } },
  } as Subject
}

describe('isWithoutAttributes', () => {
  it('is true for a claim whose spec and status have only sizes', () => {
    const spec = { resources: { requests: { storage: '1Gi' } } }
    const condition = { type: 'FileSystemResizePending', status: 'True' as const }
    expect(isWithoutAttributes(subjectOf(spec, { capacity: { storage: '1Gi' } }))).toBe(true)
    expect(isWithoutAttributes(subjectOf(spec, { conditions: [condition] }))).toBe(true)
  })

  it.each<[string, Claim['spec'], Claim['status']]>([
    ['a requested class', { volumeAttributesClassName: 'gold' }, {}],
    ['a current class', {}, { currentVolumeAttributesClassName: 'gold' }],
    ['requested iops', { resources: { requests: { iops: '100' } } }, {}],
    ['iops in effect', {}, { capacity: { iops: '100' } }],
    ['iops in progress', {}, { allocatedResources: { iops: '100' } }],
    ['a modification in progress', {}, { modifyVolumeStatus: { status: 'InProgress' } }],
    ['a condition of a modification', {}, { conditions: [{ type: MODIFYING_VOLUME, status: 'True' }] }],
  ])('is false for a claim with %s', (_, spec, status) => {
    expect(isWithoutAttributes(subjectOf(spec, status))).toBe(false)
  })
})

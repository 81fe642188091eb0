import { describe, expect, it } from 'vitest'
import { tryCreate, tryStatus } from '../try-write.fixture.ts'
import { persistentVolumeClaimKind as kind } from './claim.ts'
import type { PersistentVolumeClaimStatus } from './claim-schema.ts'

function aClaim(status: PersistentVolumeClaimStatus = {}) {
  const { object } = tryCreate(kind, {
    metadata: { name: 'data', namespace: 'shop' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '10Gi' } } },
  })
  object.status = { phase: 'Bound', ...status }
  return object
}

const setStatus = (status: object, { stored = {}, gates = '' } = {}) =>
  tryStatus(kind, aClaim(stored), (draft) => (draft.status = { phase: 'Bound', ...status }), { gates })

const SUPPORTED_STATUSES =
  '"ControllerModifyVolumeFailed", "ControllerModifyVolumeInProgress", "ControllerModifyVolumePending", ' +
  '"ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"'

describe("a claim's status", () => {
  it('is written together with metadata, but not with spec', () => {
    expect(kind.status?.acceptsMetadata).toBe(true)
    const claim = aClaim()
    const { object } = tryStatus(kind, claim, (draft) => (draft.spec.volumeName = 'pv-2'))
    expect(object.spec).toEqual(claim.spec)
  })

  it('defaults to Pending', () => {
    expect(tryStatus(kind, aClaim(), (draft) => delete draft.status).object.status).toEqual({ phase: 'Pending' })
  })

  it('can report a resize and a change to the attributes class', () => {
    const status = {
      capacity: { storage: '10Gi', iops: '100', 'example.com/x': '1' },
      allocatedResources: { storage: '20Gi', iops: '200', throughput: '10Mi', 'example.com/x': '2' },
      allocatedResourceStatuses: {
        storage: 'NodeResizePending',
        iops: 'ControllerModifyVolumeInProgress',
        throughput: 'ControllerModifyVolumePending',
        'example.com/x': 'ControllerModifyVolumeFailed',
      },
      currentVolumeAttributesClassName: 'silver',
      modifyVolumeStatus: { status: 'InProgress', targetVolumeAttributesClassName: 'gold' },
    }
    const { object, errors } = setStatus(status)
    expect(errors).toEqual([])
    expect(object.status).toEqual({ phase: 'Bound', ...status })
  })

  it.each([
    ['status.capacity[storage]: Invalid value: -1: must be a valid resource quantity', { capacity: { storage: '-1' } }],
    [
      'status.allocatedResources[storage]: Invalid value: -1: must be a valid resource quantity',
      { allocatedResources: { storage: '-1' } },
    ],
    [
      'status.allocatedResources: Unsupported value: "cpu": supported values: "storage", "iops", "throughput"',
      { allocatedResources: { cpu: '1' } },
    ],
    [
      'status.allocatedResourceStatuses: Unsupported value: "kubernetes.io/x": supported values: "storage", "iops", "throughput"',
      { allocatedResourceStatuses: { 'kubernetes.io/x': 'NodeResizePending' } },
    ],
    [
      `status.allocatedResourceStatuses: Unsupported value: "storage": supported values: ${SUPPORTED_STATUSES}`,
      { allocatedResourceStatuses: { storage: 'Shrinking' } },
    ],
    [
      'status.allocatedResources: Invalid value: "/x": prefix part must be non-empty',
      { allocatedResources: { '/x': '1' } },
    ],
  ])('is rejected: %s', (message, status) => {
    expect(setStatus(status).errors).toEqual([message])
  })

  it('is rejected if a health condition has an invalid reason', () => {
    const healthStatus = { healthConditions: [{ status: 'Degraded', reason: 'not a word' }] }
    expect(setStatus({ healthStatus }).errors[0]).toMatch(
      /^status\.healthStatus\.healthConditions\[0\]\.reason: Invalid value: "not a word": a condition reason must start/,
    )
  })

  it('keeps only stored attributes fields while the feature gate is disabled', () => {
    const gates = 'VolumeAttributesClass=false'
    const status = { currentVolumeAttributesClassName: 'gold', modifyVolumeStatus: { status: 'Pending' as const } }
    expect(setStatus(status, { gates }).object.status).toEqual({ phase: 'Bound' })
    expect(setStatus(status, { gates, stored: status }).object.status).toEqual({ phase: 'Bound', ...status })
  })

  it('keeps only stored resize fields while the feature gate is disabled', () => {
    const gates = 'RecoverExpansionFailure=false'
    const status = {
      allocatedResources: { storage: '20Gi' },
      allocatedResourceStatuses: { storage: 'NodeResizePending' as const },
    }
    expect(setStatus(status, { gates }).object.status).toEqual({ phase: 'Bound' })
    expect(setStatus(status, { gates, stored: status }).object.status).toEqual({ phase: 'Bound', ...status })
  })

  it('has a separate feature gate for iops and throughput', () => {
    const status = {
      allocatedResources: { storage: '20Gi', iops: '100' },
      allocatedResourceStatuses: { iops: 'ControllerModifyVolumeInProgress' as const },
    }
    expect(setStatus(status, { gates: 'RecoverExpansionFailure=false' }).object.status).toEqual({
      phase: 'Bound',
      allocatedResources: { iops: '100' },
      allocatedResourceStatuses: { iops: 'ControllerModifyVolumeInProgress' },
    })
    expect(setStatus(status, { gates: 'VolumeProvisionedIO=false' }).object.status).toEqual({
      phase: 'Bound',
      allocatedResources: { storage: '20Gi' },
    })
  })
})

import { describe, expect, it } from 'vitest'
import { cellOf } from '../../columns.ts'
import { type Draft, tryCreate, tryStatus, tryUpdate } from '../try-write.fixture.ts'
import { csiNodeKind as kind } from './csi-node.ts'

const aDriver = (fields: object = {}) => ({ name: 'csi.example.com', nodeID: 'n1', topologyKeys: ['zone'], ...fields })
const aNode = (...drivers: object[]) => ({ metadata: { name: 'n1' }, spec: { drivers } })
const storedNode = tryCreate(kind, aNode(aDriver({ allocatable: { count: 3 } }))).object

describe('the drivers of a node', () => {
  it('are accepted with a name, a node ID, topology keys and an optional limit, and the list may be empty', () => {
    expect(tryCreate(kind, aNode(aDriver(), aDriver({ name: 'other', allocatable: { count: 0 } }))).errors).toEqual([])
    expect(tryCreate(kind, aNode()).errors).toEqual([])
  })

  it.each<[string, object[]]>([
    ['spec.drivers[0].name: Required value', [aDriver({ name: '' })]],
    ['spec.drivers[0].nodeID: Required value', [aDriver({ nodeID: '' })]],
    [
      `spec.drivers[0].nodeID: Invalid value: "${'x'.repeat(257)}": must be 256 characters or less`,
      [aDriver({ nodeID: 'x'.repeat(257) })],
    ],
    [
      'spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0',
      [aDriver({ allocatable: { count: -1 } })],
    ],
    ['spec.drivers[1].name: Duplicate value: "csi.example.com"', [aDriver(), aDriver()]],
    ['spec.drivers[0]: Duplicate value: "zone"', [aDriver({ topologyKeys: ['zone', 'zone'] })]],
  ])('are rejected: %s', (message, drivers) => {
    expect(tryCreate(kind, aNode(...drivers)).errors).toEqual([message])
  })

  it('are rejected if their topology keys are not label keys, with the field of the driver', () => {
    const { errors } = tryCreate(kind, aNode(aDriver({ topologyKeys: ['', 'a b'] })))
    expect(errors[0]).toBe('spec.drivers[0]: Required value')
    expect(errors[errors.length - 1]).toMatch(/^spec\.drivers\[0\]: Invalid value: "a b": name part must consist/)
  })

  it('can be added and removed, and can change their volume limit', () => {
    expect(tryUpdate(kind, storedNode, (draft) => (draft.spec.drivers = [])).errors).toEqual([])
    expect(tryUpdate(kind, storedNode, (draft) => draft.spec.drivers.push(aDriver({ name: 'b' }))).errors).toEqual([])
    expect(tryUpdate(kind, storedNode, (draft) => (draft.spec.drivers[0].allocatable.count = 9)).errors).toEqual([])
    expect(tryUpdate(kind, storedNode, (draft) => delete draft.spec.drivers[0].allocatable).errors).toEqual([])
  })

  it.each<[string, (driver: Draft) => void]>([
    ['node ID', (driver) => (driver.nodeID = 'n2')],
    ['topology', (driver) => (driver.topologyKeys = ['zone', 'rack'])],
  ])('cannot change their %s', (_case, change) => {
    expect(tryUpdate(kind, storedNode, (draft) => change(draft.spec.drivers[0])).errors).toEqual([
      expect.stringMatching(/^spec\.drivers: Invalid value: .*: field is immutable$/),
    ])
  })

  it('are counted in the table', () => {
    expect(kind.columns.map(({ name, type }) => `${name} ${type}`)).toEqual([
      'Name string',
      'Drivers integer',
      'Age string',
    ])
    expect(cellOf(kind.columns[1]!, storedNode, { nowMs: 0 })).toBe(1)
  })

  it('can be updated only with a resourceVersion', () => {
    expect(kind.allowsUnconditionalUpdate).toBe(false)
  })
})

describe('the storage health of a node', () => {
  const report = (...storageHealth: object[]) =>
    tryStatus(kind, storedNode, (draft) => (draft.status = { storageHealth })).errors
  const unreachable = { status: 'StorageUnreachable', reason: 'NoRoute' }

  it('is ignored on create', () => {
    const body = { ...aNode(), status: { storageHealth: [{ name: 'd' }] } }
    expect(tryCreate(kind, body).object).not.toHaveProperty('status')
  })

  it('is accepted through /status, without metadata', () => {
    expect(kind.status?.acceptsMetadata).toBe(false)
    expect(
      report({ name: 'd', healthConditions: [{ ...unreachable, accessMode: 'ReadWriteOnce', volumeMode: 'Block' }] }),
    ).toEqual([])
  })

  it.each<[string, object[]]>([
    ['status.storageHealth[0].name: Required value', [{ name: '' }]],
    ['status.storageHealth[1]: Duplicate value: "d"', [{ name: 'd' }, { name: 'd' }]],
    [
      'status.storageHealth[0].healthConditions: Too many: 17: must have at most 16 items',
      [{ name: 'd', healthConditions: Array(17).fill(unreachable) }],
    ],
    [
      'status.storageHealth[0].healthConditions[0].status: Unsupported value: "Bad": supported values: "StorageDegraded", "StorageUnreachable"',
      [{ name: 'd', healthConditions: [{ ...unreachable, status: 'Bad' }] }],
    ],
    [
      'status.storageHealth[0].healthConditions[0].reason: Required value',
      [{ name: 'd', healthConditions: [{ ...unreachable, reason: '' }] }],
    ],
    [
      'status.storageHealth[0].healthConditions[0].reason: Too long: may not be more than 256 bytes',
      [{ name: 'd', healthConditions: [{ ...unreachable, reason: 'x'.repeat(257) }] }],
    ],
    [
      'status.storageHealth[0].healthConditions[0].message: Too long: may not be more than 1024 bytes',
      [{ name: 'd', healthConditions: [{ ...unreachable, message: 'x'.repeat(1025) }] }],
    ],
    [
      'status.storageHealth[0].healthConditions[0].volumeMode: Unsupported value: "Raw": supported values: "Filesystem", "Block"',
      [{ name: 'd', healthConditions: [{ ...unreachable, volumeMode: 'Raw' }] }],
    ],
  ])('is rejected: %s', (message, storageHealth) => {
    expect(report(...storageHealth)).toEqual([message])
  })
})

import { describe, expect, it } from 'vitest'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import { createResources } from '../resources.ts'
import type { Json } from '../server.fixture.ts'
import { type IncludeObject, tableOf } from './table.ts'

const resources = createResources(ALL_KINDS)
const nowMs = Date.parse('2026-01-01T01:00:00Z')

const renderTable = (
  plural: string,
  objects: object[],
  { isList = true, include = 'Metadata' as IncludeObject } = {},
): Json => {
  const resource = resources.all.find((candidate) => candidate.plural === plural)!
  return tableOf(
    resource,
    objects,
    { resourceVersion: '7' },
    { metaVersion: 'v1', include, nowMs, isList, hasColumns: true },
  )
}
const aClass = (name: string, isDefault: boolean, creationTimestamp = '2026-01-01T00:00:00Z') => ({
  metadata: {
    name,
    creationTimestamp,
    ...(isDefault ? { annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } } : {}),
  },
  provisioner: 'example.com/p',
  reclaimPolicy: 'Delete',
  volumeBindingMode: 'Immediate',
})
const firstCells = (table: Json) => table.rows.map(({ cells }: Json) => cells[0])

describe('tableOf', () => {
  it('SYS-2 defines the columns, with priority 1 for wide ones', () => {
    const { kind, apiVersion, metadata, columnDefinitions } = renderTable('csinodes', [])
    expect({ kind, apiVersion, metadata }).toEqual({
      kind: 'Table',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { resourceVersion: '7' },
    })
    expect(columnDefinitions[0]).toMatchObject({ name: 'Name', type: 'string', format: 'name', priority: 0 })
    expect(columnDefinitions[0].description).not.toBe('')
    const pods = renderTable('pods', []).columnDefinitions
    expect(pods.find(({ name }: Json) => name === 'Node').priority).toBe(1)
  })

  it('SYS-2 returns numbers and booleans without converting them to strings', () => {
    const drivers = [{ name: 'd', nodeID: 'n' }]
    const [name, count, age] = renderTable('csinodes', [
      { metadata: { name: 'n', creationTimestamp: '2026-01-01T00:00:00Z' }, spec: { drivers } },
    ]).rows[0].cells
    expect([name, count, age]).toEqual(['n', 1, '60m'])
    const attachment = {
      metadata: { name: 'a' },
      spec: { attacher: 'd', nodeName: 'n', source: { persistentVolumeName: 'v' } },
      status: { attached: true },
    }
    expect(renderTable('volumeattachments', [attachment]).rows[0].cells).toEqual([
      'a',
      'd',
      'v',
      'n',
      true,
      '<unknown>',
    ])
  })

  it('marks the newest default class in a list, but no class in the table of a single class', () => {
    const olderClass = aClass('older', true)
    const newerClass = aClass('newer', true, '2026-01-01T00:30:00Z')
    const plainClass = aClass('plain', false)
    expect(firstCells(renderTable('storageclasses', [newerClass, olderClass, plainClass]))).toEqual([
      'newer (default)',
      'older',
      'plain',
    ])
    expect(firstCells(renderTable('storageclasses', [olderClass], { isList: false }))).toEqual(['older'])
  })

  it('includes the metadata, the object or neither in each row, as requested', () => {
    const object = aClass('fast', false)
    expect(renderTable('storageclasses', [object]).rows[0].object).toEqual({
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.k8s.io/v1',
      metadata: object.metadata,
    })
    expect(renderTable('storageclasses', [object], { include: 'Object' }).rows[0].object).toEqual({
      kind: 'StorageClass',
      apiVersion: 'storage.k8s.io/v1',
      ...object,
    })
    expect(renderTable('storageclasses', [object], { include: 'None' }).rows[0].object).toBeUndefined()
  })
})

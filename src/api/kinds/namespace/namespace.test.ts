import { describe, expect, it } from 'vitest'
import { cellsOf, tryCreate, tryStatus, tryUpdate } from '../kind.fixture.ts'
import { namespaceKind } from './namespace.ts'

const shop = tryCreate(namespaceKind, { metadata: { name: 'shop', creationTimestamp: '2026-01-02T02:04:05Z' } }).object

describe('Namespace', () => {
  it('has its name as a label, the finalizer kubernetes and the phase Active after creation', () => {
    expect(shop).toMatchObject({
      metadata: { labels: { 'kubernetes.io/metadata.name': 'shop' } },
      spec: { finalizers: ['kubernetes'] },
      status: { phase: 'Active' },
    })
  })

  it('keeps finalizers from the request', () => {
    const body = { metadata: { name: 'shop' }, spec: { finalizers: ['example.com/archive'] } }
    expect(tryCreate(namespaceKind, body).object.spec).toEqual({ finalizers: ['example.com/archive', 'kubernetes'] })
  })

  it('requires a DNS label as name', () => {
    expect(namespaceKind.nameErrors('shop')).toEqual([])
    expect(namespaceKind.nameErrors('shop.eu')).toEqual(['must not contain dots'])
  })

  it('rejects a finalizer without a domain', () => {
    const body = { metadata: { name: 'shop' }, spec: { finalizers: ['archive'] } }
    expect(tryCreate(namespaceKind, body).errors).toEqual([
      'spec.finalizers: Invalid value: "archive": name is neither a standard finalizer name nor is it fully qualified',
    ])
  })

  it('keeps its finalizers and label in an update', () => {
    const { object, errors } = tryUpdate(namespaceKind, shop, { metadata: { name: 'shop', labels: { team: 'a' } } })
    expect(errors).toEqual([])
    expect(object.spec).toEqual({ finalizers: ['kubernetes'] })
    expect(object.metadata.labels).toEqual({ team: 'a', 'kubernetes.io/metadata.name': 'shop' })
  })

  it('accepts the phase Terminating only while it is being deleted', () => {
    expect(tryStatus(namespaceKind, shop, { phase: 'Terminating' }).errors).toEqual([
      'status.Phase: Invalid value: "Terminating": may only be \'Active\' if `deletionTimestamp` is empty',
    ])
    const terminatingNamespace = { ...shop, metadata: { ...shop.metadata, deletionTimestamp: '2026-01-02T03:00:00Z' } }
    expect(tryStatus(namespaceKind, terminatingNamespace, { phase: 'Terminating' }).errors).toEqual([])
    expect(tryStatus(namespaceKind, terminatingNamespace, { phase: 'Active' }).errors).toEqual([
      'status.Phase: Invalid value: "Active": may only be \'Terminating\' if `deletionTimestamp` is not empty',
    ])
  })

  it('has a table row with its phase', () => {
    expect(cellsOf(namespaceKind, shop)).toEqual({ Name: 'shop', Status: 'Active', Age: '60m' })
  })
})

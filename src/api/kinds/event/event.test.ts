import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { allGatesOn } from '../../feature-gates.ts'
import { FIXTURE_NOW_MS, row, tryCreate, tryUpdate } from '../kind.fixture.ts'
import { eventKind } from './event.ts'
import { EVENT_LIFETIME_MS } from './event-rules.ts'
import type { Event } from './event-schema.ts'
import { eventsEventKind } from './events-event.ts'

const oldStyle = (fields: object = {}) => ({
  metadata: { name: 'data.1', namespace: 'shop' },
  involvedObject: { kind: 'PersistentVolumeClaim', name: 'data', namespace: 'shop', fieldPath: 'spec' },
  reason: 'ProvisioningFailed',
  message: 'no room ',
  type: 'Warning',
  source: { component: 'provisioner', host: 'node-1' },
  firstTimestamp: '2026-01-02T02:04:05Z',
  lastTimestamp: '2026-01-02T03:04:00Z',
  count: 4,
  ...fields,
})

const newStyle = (fields: object = {}) => ({
  metadata: { name: 'data.1', namespace: 'shop' },
  regarding: { kind: 'PersistentVolumeClaim', name: 'data', namespace: 'shop' },
  eventTime: '2026-01-02T03:00:00.123456Z',
  reason: 'ProvisioningFailed',
  note: 'no room',
  type: 'Warning',
  action: 'Provision',
  reportingController: 'example.com/provisioner',
  reportingInstance: 'provisioner-0',
  ...fields,
})

describe('Event of the core group', () => {
  it.each([
    ['shop', 'shop', true],
    ['shop', 'elsewhere', false],
    [undefined, 'default', true],
    [undefined, 'kube-system', false],
  ])('old style, object in namespace %s, event in namespace %s: valid %s', (about, namespace, valid) => {
    const { errors } = tryCreate(
      eventKind,
      oldStyle({ metadata: { name: 'e', namespace }, involvedObject: { kind: 'X', name: 'x', namespace: about } }),
    )
    const shown = JSON.stringify(about ?? '')
    const error = `involvedObject.namespace: Invalid value: ${shown}: does not match event.namespace`
    expect(errors).toEqual(valid ? [] : [error])
  })

  it('new style, cluster-scoped object: accepts the namespaces default and kube-system', () => {
    const inNamespace = (namespace: string) => {
      const metadata = { name: 'e', namespace }
      const { regarding: _, note: __, reportingController, ...rest } = newStyle()
      const body = { ...rest, metadata, involvedObject: { kind: 'Node' }, reportingComponent: reportingController }
      return tryCreate(eventKind, body).errors
    }
    expect(inNamespace('default')).toEqual([])
    expect(inNamespace('kube-system')).toEqual([])
    expect(inNamespace('shop')).toEqual(['involvedObject.namespace: Invalid value: "": does not match event.namespace'])
  })

  it('requires reporter, action and reason if it has an eventTime', () => {
    const body = { ...oldStyle({ reason: '' }), eventTime: '2026-01-02T03:00:00.000000Z', action: 'x'.repeat(129) }
    expect(tryCreate(eventKind, body).errors).toEqual([
      'reportingComponent: Required value',
      'reportingComponent: Invalid value: "": name part must be non-empty',
      expect.stringContaining('reportingComponent: Invalid value: "": name part must consist of'),
      'reportingInstance: Required value',
      'action: Invalid value: "": can have at most 128 characters',
      'reason: Required value',
    ])
  })

  it('expires one hour after the last write', () => {
    const { object } = tryCreate(eventKind, oldStyle())
    const context = { nowMs: FIXTURE_NOW_MS, gates: allGatesOn }
    expect(eventKind.expiresAtMs?.(object, context)).toBe(FIXTURE_NOW_MS + EVENT_LIFETIME_MS)
    expect(EVENT_LIFETIME_MS).toBe(3_600_000)
  })

  it('has a table row with time, reason and object', () => {
    expect(row(eventKind, tryCreate(eventKind, oldStyle()).object)).toEqual({
      'Last Seen': '5s',
      Type: 'Warning',
      Reason: 'ProvisioningFailed',
      Object: 'persistentvolumeclaim/data',
      Subobject: 'spec',
      Source: 'provisioner, node-1',
      Message: 'no room',
      'First Seen': '60m',
      Count: 4,
      Name: 'data.1',
    })
  })

  it('has the time and count of its series in the table', () => {
    const series = { count: 7, lastObservedTime: '2026-01-02T03:04:02.000000Z' }
    expect(row(eventKind, tryCreate(eventKind, oldStyle({ series })).object)).toMatchObject({
      'Last Seen': '3s',
      Count: 7,
    })
  })

  it('has a count of one if none is set', () => {
    const { count: _, ...single } = oldStyle()
    expect(row(eventKind, tryCreate(eventKind, single).object)).toMatchObject({ Count: 1 })
  })

  it('can be selected by its reporter under either field', () => {
    const { source } = eventKind.selectableFields ?? {}
    expect(source?.(tryCreate(eventKind, oldStyle()).object)).toBe('provisioner')
    expect(source?.(tryCreate(eventKind, oldStyle({ source: {}, reportingComponent: 'x' })).object)).toBe('x')
  })
})

describe('Event of events.k8s.io', () => {
  it('accepts a new-style event', () => {
    expect(tryCreate(eventsEventKind, newStyle()).errors).toEqual([])
  })

  it.each([
    [{ eventTime: undefined }, 'eventTime: Required value'],
    [{ type: 'Alarm' }, 'type: Invalid value: "": has invalid value: Alarm'],
    [{ deprecatedFirstTimestamp: '2026-01-02T03:00:00Z' }, 'firstTimestamp: Invalid value: "": needs to be unset'],
    [{ deprecatedLastTimestamp: '2026-01-02T03:00:00Z' }, 'lastTimestamp: Invalid value: "": needs to be unset'],
    [{ deprecatedCount: 1 }, 'count: Invalid value: "": needs to be unset'],
    [{ deprecatedSource: { component: 'x' } }, 'source: Invalid value: "": needs to be unset'],
    [{ reportingInstance: '' }, 'reportingInstance: Required value'],
    [{ note: 'x'.repeat(1_025) }, 'message: Invalid value: "": can have at most 1024 characters'],
    [
      { series: { count: 1, lastObservedTime: '2026-01-02T03:00:00.000000Z' } },
      'series.count: Invalid value: "": should be at least 2',
    ],
    [{ series: { count: 2 } }, 'series.lastObservedTime: Required value'],
  ])('rejects the creation with %j', (fields, message) => {
    expect(tryCreate(eventsEventKind, newStyle(fields)).errors).toEqual([message])
  })

  it('accepts changes of the series only', () => {
    const { object } = tryCreate(eventsEventKind, newStyle())
    const series = { count: 2, lastObservedTime: '2026-01-02T03:01:00.000000Z' }
    expect(tryUpdate(eventsEventKind, object, newStyle({ series })).errors).toEqual([])
    expect(tryUpdate(eventsEventKind, object, newStyle({ note: 'other', reportingController: 'x' })).errors).toEqual([
      'message: Invalid value: "other": field is immutable',
      'reportingController: Invalid value: "x": field is immutable',
    ])
  })

  it('converts every stored event and back without loss', () => {
    const { toStored, fromStored } = eventsEventKind.viewOf!
    const text = fc.string({ minLength: 1 })
    const times = fc.constantFrom('2026-01-02T03:04:05Z', '2026-01-02T03:04:06Z')
    const reference = fc.record({ kind: text, name: text, namespace: text }, { requiredKeys: [] })
    const stored = fc.record(
      {
        metadata: fc.record({ name: text }),
        involvedObject: reference,
        related: reference,
        reason: text,
        message: text,
        source: fc.record({ component: text, host: text }, { requiredKeys: [] }),
        firstTimestamp: times,
        lastTimestamp: times,
        count: fc.integer({ min: 1 }),
        type: text,
        eventTime: times,
        series: fc.record({ count: fc.integer({ min: 1 }), lastObservedTime: times }, { requiredKeys: [] }),
        action: text,
        reportingComponent: fc.string(),
        reportingInstance: fc.string(),
      },
      { requiredKeys: ['metadata', 'involvedObject', 'reportingComponent', 'reportingInstance'] },
    )
    fc.assert(
      fc.property(stored, (event) => {
        expect(toStored(fromStored(event)) as Event).toEqual(event)
      }),
    )
  })

  it('has the same table row as the event of the core group', () => {
    const stored = tryCreate(eventKind, oldStyle()).object
    expect(row(eventsEventKind, eventsEventKind.viewOf!.fromStored(stored))).toEqual(row(eventKind, stored))
  })
})

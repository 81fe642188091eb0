import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { allGatesOn } from '../../feature-gates.ts'
import { cellsOf, FIXTURE_NOW_MS, tryCreate, tryUpdate } from '../kind.fixture.ts'
import { eventKind } from './event.ts'
import { EVENT_LIFETIME_MS } from './event-rules.ts'
import type { Event } from './event-schema.ts'
import { eventsEventKind } from './events-event.ts'

const oldStyleEvent = (fields: object = {}) => ({
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

const newStyleEvent = (fields: object = {}) => ({
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
  ])(
    'accepts an old-style event about an object in namespace %s if it is in namespace %s: %s',
    (objectNamespace, namespace, isValid) => {
      const { errors } = tryCreate(
        eventKind,
        oldStyleEvent({
          metadata: { name: 'e', namespace },
          involvedObject: { kind: 'X', name: 'x', namespace: objectNamespace },
        }),
      )
      const quotedNamespace = JSON.stringify(objectNamespace ?? '')
      const error = `involvedObject.namespace: Invalid value: ${quotedNamespace}: does not match event.namespace`
      expect(errors).toEqual(isValid ? [] : [error])
    },
  )

  it('accepts new-style events about cluster-scoped objects only in namespaces default and kube-system', () => {
    const createInNamespace = (namespace: string) => {
      const metadata = { name: 'e', namespace }
      const { regarding: _, note: __, reportingController, ...fields } = newStyleEvent()
      const body = { ...fields, metadata, involvedObject: { kind: 'Node' }, reportingComponent: reportingController }
      return tryCreate(eventKind, body).errors
    }
    expect(createInNamespace('default')).toEqual([])
    expect(createInNamespace('kube-system')).toEqual([])
    expect(createInNamespace('shop')).toEqual([
      'involvedObject.namespace: Invalid value: "": does not match event.namespace',
    ])
  })

  it('requires a reporter, a reason and an action of at most 128 characters if it has an eventTime', () => {
    const body = { ...oldStyleEvent({ reason: '' }), eventTime: '2026-01-02T03:00:00.000000Z', action: 'x'.repeat(129) }
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
    const { object } = tryCreate(eventKind, oldStyleEvent())
    const context = { nowMs: FIXTURE_NOW_MS, gates: allGatesOn }
    expect(eventKind.expiresAtMs?.(object, context)).toBe(FIXTURE_NOW_MS + EVENT_LIFETIME_MS)
    expect(EVENT_LIFETIME_MS).toBe(3_600_000)
  })

  it('has a table row with time, reason and object', () => {
    expect(cellsOf(eventKind, tryCreate(eventKind, oldStyleEvent()).object)).toEqual({
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
    expect(cellsOf(eventKind, tryCreate(eventKind, oldStyleEvent({ series })).object)).toMatchObject({
      'Last Seen': '3s',
      Count: 7,
    })
  })

  it('has a count of one if none is set', () => {
    const { count: _, ...eventWithoutCount } = oldStyleEvent()
    expect(cellsOf(eventKind, tryCreate(eventKind, eventWithoutCount).object)).toMatchObject({ Count: 1 })
  })

  it('can be selected by its source, or else by its reporting component, with the field selector "source"', () => {
    const { source } = eventKind.selectableFields ?? {}
    expect(source?.(tryCreate(eventKind, oldStyleEvent()).object)).toBe('provisioner')
    expect(source?.(tryCreate(eventKind, oldStyleEvent({ source: {}, reportingComponent: 'x' })).object)).toBe('x')
  })
})

describe('Event of events.k8s.io', () => {
  it('accepts a new-style event', () => {
    expect(tryCreate(eventsEventKind, newStyleEvent()).errors).toEqual([])
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
  ])('rejects a new event with %j', (fields, message) => {
    expect(tryCreate(eventsEventKind, newStyleEvent(fields)).errors).toEqual([message])
  })

  it('accepts only changes to the series', () => {
    const { object } = tryCreate(eventsEventKind, newStyleEvent())
    const series = { count: 2, lastObservedTime: '2026-01-02T03:01:00.000000Z' }
    expect(tryUpdate(eventsEventKind, object, newStyleEvent({ series })).errors).toEqual([])
    expect(
      tryUpdate(eventsEventKind, object, newStyleEvent({ note: 'other', reportingController: 'x' })).errors,
    ).toEqual([
      'message: Invalid value: "other": field is immutable',
      'reportingController: Invalid value: "x": field is immutable',
    ])
  })

  it('is converted from the stored form and back without loss', () => {
    const { toStored, fromStored } = eventsEventKind.viewOf!
    const anyText = fc.string({ minLength: 1 })
    const anyTime = fc.constantFrom('2026-01-02T03:04:05Z', '2026-01-02T03:04:06Z')
    const anyReference = fc.record({ kind: anyText, name: anyText, namespace: anyText }, { requiredKeys: [] })
    const anyStoredEvent = fc.record(
      {
        metadata: fc.record({ name: anyText }),
        involvedObject: anyReference,
        related: anyReference,
        reason: anyText,
        message: anyText,
        source: fc.record({ component: anyText, host: anyText }, { requiredKeys: [] }),
        firstTimestamp: anyTime,
        lastTimestamp: anyTime,
        count: fc.integer({ min: 1 }),
        type: anyText,
        eventTime: anyTime,
        series: fc.record({ count: fc.integer({ min: 1 }), lastObservedTime: anyTime }, { requiredKeys: [] }),
        action: anyText,
        reportingComponent: fc.string(),
        reportingInstance: fc.string(),
      },
      { requiredKeys: ['metadata', 'involvedObject', 'reportingComponent', 'reportingInstance'] },
    )
    fc.assert(
      fc.property(anyStoredEvent, (event) => {
        expect(toStored(fromStored(event)) as Event).toEqual(event)
      }),
    )
  })

  it('has the same table row as the event of the core group', () => {
    const storedEvent = tryCreate(eventKind, oldStyleEvent()).object
    expect(cellsOf(eventsEventKind, eventsEventKind.viewOf!.fromStored(storedEvent))).toEqual(
      cellsOf(eventKind, storedEvent),
    )
  })
})

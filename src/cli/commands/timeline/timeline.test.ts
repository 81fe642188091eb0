import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { timelineReviewKind } from '../../../api/kinds/timeline/timeline-review.ts'
import type { TimelineReview } from '../../../api/kinds/timeline/timeline-schema.ts'
import { ApiError } from '../../../api/status-error.ts'
import { createServerFixture, type ServerFixture } from '../../../apiserver/server.fixture.ts'
import { UsageError } from '../../../base/usage-error.ts'
import type { Client } from '../../../client/index.ts'
import { drawTimeline } from './draw-timeline.ts'
import { actorOf, formatTimeline } from './format-timeline.ts'
import { parseTarget, readShownTimeline } from './run.ts'
import type { ShownTimeline } from './shown-timeline.ts'

const { signal } = new AbortController()

const TIMELINE: ShownTimeline = {
  kind: 'PersistentVolumeClaim',
  namespace: 'shop',
  name: 'orders',
  uid: 'u-1',
  source: 'journal',
  notes: [],
  otherUids: ['u-0'],
  steps: [
    { name: 'Created', time: '2026-11-17T10:00:00.000000Z' },
    { name: 'Provisioned', time: '2026-11-17T10:00:00.412000Z' },
    { name: 'Bound', time: '2026-11-17T10:00:02.412000Z' },
  ],
  entries: [
    {
      time: '2026-11-17T10:00:00.000000Z',
      type: 'Change',
      object: { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'orders', uid: 'u-1' },
      action: 'create',
      user: 'ann',
      manager: 'kubectl',
      changes: ['request 10Gi', 'class fast'],
    },
    {
      time: '2026-11-17T10:00:00.050000Z',
      durationMs: 1_500,
      type: 'Call',
      action: 'CreateVolume',
      component: 'disk.example',
      process: 'p',
      result: 'ResourceExhausted',
      message: 'pool "a" <full>\n& closed',
    },
    {
      time: '2026-11-17T10:00:02.000000Z',
      durationMs: 12,
      type: 'Attempt',
      object: { kind: 'PersistentVolumeClaim', name: 'orders' },
      action: 'Provision',
      component: 'provisioner',
      result: 'Done',
    },
  ],
}

describe('the text of a timeline', () => {
  it('PLUS-6 has the steps, and a line per entry with actor, action and duration', () => {
    expect(formatTimeline(TIMELINE)).toBe(
      [
        'pvc/orders in namespace shop (uid u-1)',
        'Other objects had this name; show them with --uid: u-0',
        '',
        'Created → Provisioned +412ms → Bound +2.0s (total 2.4s)',
        '',
        'TIME                     DURATION  WHO            WHAT',
        '2026-11-17 10:00:00.000            ann (kubectl)  create pvc/orders: request 10Gi, class fast',
        '2026-11-17 10:00:00.050  1.5s      disk.example   CreateVolume → ResourceExhausted: pool "a" <full> & closed',
        '2026-11-17 10:00:02.000  12ms      provisioner    Provision pvc/orders → Done',
        '',
      ].join('\n'),
    )
  })

  it('PLUS-6 shortens the names of service accounts', () => {
    const [entry] = TIMELINE.entries
    expect(actorOf({ ...entry!, user: 'system:serviceaccount:kube-system:binder', manager: '' })).toBe(
      'kube-system/binder',
    )
  })

  it('PLUS-6 states that a timeline is reconstructed', () => {
    expect(formatTimeline({ ...TIMELINE, source: 'objects' })).toMatch(/^Reconstructed from events/m)
  })

  it('PLUS-6 shows whole seconds between the steps of a reconstructed timeline', () => {
    const steps: typeof TIMELINE.steps = [
      { name: 'Created', time: '2026-11-17T10:00:00Z' },
      { name: 'Provisioned', time: '2026-11-17T10:00:00Z' },
      { name: 'Bound', time: '2026-11-17T10:00:02Z' },
    ]
    const reconstructed = { ...TIMELINE, steps, source: 'objects' as const }
    expect(formatTimeline(reconstructed)).toContain('Created → Provisioned +<1s → Bound +2s (total 2s)')
    expect(drawTimeline(reconstructed)).toContain('Bound +2s')
  })
})

describe('the picture of a timeline', () => {
  it('PLUS-6 has a row per entry and escapes texts', () => {
    const svg = drawTimeline(TIMELINE)
    expect(svg).toContain('pool &quot;a&quot; &lt;full&gt; &amp; closed')
    expect(svg).not.toContain('<full>')
    expect(svg.match(/<line /g)).toHaveLength(3)
    expect(svg.match(/<path /g)).toHaveLength(1)
    expect(svg.match(/<g>/g)).toHaveLength(svg.match(/<\/g>/g)!.length)
    expect(svg).toContain('Bound +2.0s')
  })

  it('PLUS-6 places all entries inside the picture, in the order of their times', () => {
    const svg = drawTimeline(TIMELINE)
    const positions = [...svg.matchAll(/<(?:rect x="|path d="M)([\d.]+)/g)].map(([, x]) => Number(x))
    for (const x of positions) expect(x).toBeLessThan(1_280)
    const [change, call, attempt] = positions.slice(-3)
    expect(change).toBeLessThan(call!)
    expect(call).toBeLessThan(attempt!)
  })

  it('PLUS-6 of an empty timeline is a complete SVG document', () => {
    expect(drawTimeline({ ...TIMELINE, steps: [], entries: [] })).toMatch(/^<svg [\s\S]*<\/svg>\n$/)
  })
})

describe('parseTarget', () => {
  it('returns a claim in a namespace, or a volume', () => {
    expect(parseTarget('pvc/a', {}, 'shop')).toEqual({ kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'a' })
    expect(parseTarget('persistentvolumes/a', { uid: 'u', namespace: 'x' }, 'shop')).toEqual({
      kind: 'PersistentVolume',
      name: 'a',
      uid: 'u',
    })
  })

  it.each(['pvc', 'pod/a', 'pvc/', 'pvc/a/b'])('rejects %s', (text) => {
    expect(() => parseTarget(text, {}, 'shop')).toThrow(UsageError)
  })
})

describe('readShownTimeline', () => {
  let server: ServerFixture
  beforeEach(async () => {
    server = await createServerFixture({ journal: 'own', answers: 'stowage' })
  })
  afterEach(() => server.store.close())

  const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
  const target = { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'orders' } as const
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, volumeName: 'disk' }

  /** A client that sends reviews over HTTP, because the in-process client does not support them. */
  const clientWith = (isServed: boolean): Client => ({
    ...server.client(),
    serves: async () => isServed,
    create: (async (_kind: unknown, object: TimelineReview) => {
      const { group, versions, plural } = timelineReviewKind
      return (await server.post(`/apis/${group}/${versions[0]}/${plural}`, object)).json
    }) as unknown as Client['create'],
  })

  it('PLUS-6 reads the journal of a Stowage server, and fails for a name or uid without records', async () => {
    await server.post(CLAIMS, { metadata: { name: 'orders' }, spec })
    const timeline = await readShownTimeline(clientWith(true), target, signal)
    expect(timeline).toMatchObject({ source: 'journal', entries: [{ action: 'create', user: 'tester' }] })
    await expect(readShownTimeline(clientWith(true), { ...target, name: 'other' }, signal)).rejects.toThrow(
      'There is no timeline of pvc/other in namespace default.',
    )
    await expect(readShownTimeline(clientWith(true), { ...target, name: 'oders' }, signal)).rejects.toThrow(
      `There is no timeline of pvc/oders in namespace default. Similar names: ${target.name}.`,
    )
    await expect(readShownTimeline(clientWith(true), { ...target, uid: 'x' }, signal)).rejects.toThrow(timeline.uid)
  })

  it('PLUS-6 reconstructs the timeline on another API server from the managed fields and events of the claim and its volume', async () => {
    const { metadata } = (await server.post(`${CLAIMS}?fieldManager=kubectl`, { metadata: { name: 'orders' }, spec }))
      .json
    const claimRef = { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'orders', uid: metadata.uid }
    await server.post('/api/v1/persistentvolumes', {
      metadata: { name: 'disk' },
      spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/a' }, claimRef },
    })
    await server.clock.advance(2_000)
    await server.patch(`${CLAIMS}/orders/status?fieldManager=binder`, { status: { phase: 'Bound' } }, 'merge')
    await server.post('/api/v1/namespaces/default/events', {
      metadata: { name: 'orders.1' },
      involvedObject: { ...claimRef },
      reason: 'ProvisioningFailed',
      message: 'the pool is full',
      type: 'Warning',
      count: 3,
      source: { component: 'provisioner' },
      firstTimestamp: new Date(server.clock.nowMs()).toISOString(),
    })
    const timeline = await readShownTimeline(clientWith(false), target, signal)
    expect(timeline).toMatchObject({ source: 'objects', uid: metadata.uid, notes: [] })
    expect(timeline.steps.map(({ name }) => name)).toEqual(['Created', 'Provisioned', 'Bound'])
    const text = formatTimeline(timeline)
    expect(text).toMatch(/kubectl +update pvc\/orders: set spec\./)
    expect(text).toMatch(/binder +update status pvc\/orders: set status.phase/)
    expect(text).toMatch(/provisioner +ProvisioningFailed pvc\/orders: the pool is full \(3 times\)/)
    expect(text).toContain('create pv/disk')
    const volumeTimeline = await readShownTimeline(
      clientWith(false),
      { kind: 'PersistentVolume', name: 'disk' },
      signal,
    )
    expect(formatTimeline(volumeTimeline)).toContain('create pvc/orders')
    await expect(readShownTimeline(clientWith(false), { ...target, name: 'other' }, signal)).rejects.toThrow(
      'This API server has no journal',
    )
  })

  it('PLUS-6 reports a missing permission instead of a missing object', async () => {
    const message = 'persistentvolumeclaims "orders" is forbidden: User "guest" cannot get resource'
    const get = () => Promise.reject(new ApiError(403, 'Forbidden', message))
    const guest = { ...clientWith(false), get: get as Client['get'] }
    await expect(readShownTimeline(guest, target, signal)).rejects.toThrow(`Cannot read pvc/orders: ${message}`)
  })
})

import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import type { AnyProvisionerPlugin, ExistingVolume, ProvisionedVolume, ProvisionRequest } from './plugin/contract.ts'
import { IgnoredError, InfeasibleError, NotCreatedError, RescheduleError, UnreachableError } from './plugin/failures.ts'
import { parameter } from './plugin/parameter.ts'
import { aRequest, type RequestFields } from './plugin/plugin.fixture.ts'
import { provisionerOf } from './plugin.ts'

const GI = 1024n ** 3n
const NFS = { nfs: { server: 'filer', path: '/x' } }

/** Creates the provisioner of a plugin that records its requests. Overrides replace functions of the plugin. */
function createPluginFixture(overrides: Partial<AnyProvisionerPlugin> = {}) {
  const requests: ProvisionRequest[] = []
  const deletedVolumes: ExistingVolume[] = []
  const plugin: AnyProvisionerPlugin = {
    name: 'example.com/tiers',
    async provision(request) {
      requests.push(request)
      return { sizeBytes: request.sizeBytes, source: NFS }
    },
    async delete(volume) {
      deletedVolumes.push(volume)
    },
    ...overrides,
  }
  const clock = manualClock()
  const provisioner = provisionerOf(plugin, { clock })
  const provision = (fields?: RequestFields) => provisioner.provision(aRequest(fields), new AbortController().signal)
  return { requests, deletedVolumes, clock, provisioner, provision }
}

const pluginReturning = (result: Partial<ProvisionedVolume>) => ({
  provision: async () => ({ sizeBytes: GI, source: NFS, ...result }) as ProvisionedVolume,
})
const pluginThrowing = (error: unknown) => ({
  provision: async () => {
    throw error
  },
})
function createDeferred() {
  let resolve: (result: ProvisionedVolume) => void = () => {}
  let reject: (error: unknown) => void = () => {}
  const promise = new Promise<ProvisionedVolume>((resolvePromise, rejectPromise) => {
    resolve = resolvePromise
    reject = rejectPromise
  })
  return { promise, resolve, reject }
}
const aVolume = (extra: object = {}) => ({
  metadata: { name: 'pvc-u-1', annotations: { 'example.com/id': '7' } },
  spec: { capacity: { storage: '1Gi' }, ...NFS, ...extra },
})

describe('provisionerOf', () => {
  it('PROV-11 returns the volume that the plugin created', async () => {
    const { provision } = createPluginFixture({
      takesMountOptions: true,
      ...pluginReturning({
        sizeBytes: 2n * GI,
        labels: { 'example.com/tier': 'fast' },
        annotations: { 'example.com/id': '7' },
        mountOptions: ['hard'],
        reachableFrom: [{ 'topology.kubernetes.io/zone': 'a' }, { 'topology.kubernetes.io/zone': 'b' }],
      }),
    })
    const zone = (value: string) => ({
      matchExpressions: [{ key: 'topology.kubernetes.io/zone', operator: 'In', values: [value] }],
    })
    expect(await provision({ storageClass: { mountOptions: ['ro'] } })).toEqual({
      is: 'provisioned',
      volume: {
        labels: { 'example.com/tier': 'fast' },
        annotations: { 'example.com/id': '7' },
        spec: {
          ...NFS,
          capacity: { storage: '2Gi' },
          mountOptions: ['ro', 'hard'],
          nodeAffinity: { required: { nodeSelectorTerms: [zone('a'), zone('b')] } },
        },
      },
    })
  })

  it('PROV-8 passes the request of the claim to the plugin, without internal fields', async () => {
    const { requests, provision } = createPluginFixture({
      parameters: { size: parameter.integer({ doc: 'd', default: 3 }) },
    })
    await provision({
      size: '1.5Gi',
      selectedNode: 'n1',
      spec: { resources: { requests: { storage: '1.5Gi' }, limits: { storage: '2Gi' } } },
    })
    expect(requests).toEqual([
      {
        volumeName: 'pvc-u-1',
        sizeBytes: (3n * GI) / 2n,
        sizeLimitBytes: 2n * GI,
        accessModes: ['ReadWriteOnce'],
        volumeMode: 'Filesystem',
        parameters: { size: 3 },
        labels: {},
        mountOptions: [],
        allowedTopologies: [],
        selectedNode: 'n1',
        className: 'fast',
        claim: { namespace: 'shop', name: 'orders', uid: 'u-1', labels: {}, annotations: {} },
      },
    ])
  })

  const FAILURES = [
    ['an Error', new Error('boom'), 'unfinished'],
    ['a string', 'boom', 'unfinished'],
    ['InfeasibleError', new InfeasibleError('boom'), 'infeasible'],
    ['NotCreatedError', new NotCreatedError('boom'), 'final'],
    ['RescheduleError', new RescheduleError('boom'), 'reschedule'],
    ['UnreachableError', new UnreachableError('boom'), 'noChange'],
  ] as const
  const ERRORS_WITHOUT_MESSAGE: [unknown, string][] = [
    [null, 'null was thrown instead of an Error'],
    [undefined, 'undefined was thrown'],
    [{ status: 500 }, '{ status: 500 } was thrown'],
    [new TypeError(), '(TypeError)'],
  ]
  for (const [thrown, description] of ERRORS_WITHOUT_MESSAGE) {
    it(`PROV-8 describes an error without a message: ${description}`, async () => {
      const result = await createPluginFixture(pluginThrowing(thrown)).provision()
      const message = expect.stringMatching(/^the plugin failed without a message \(/)
      expect(result).toEqual({ is: 'failed', failure: 'unfinished', message })
      expect(result).toMatchObject({ message: expect.stringContaining(description) })
    })
  }

  for (const [description, error, failure] of FAILURES) {
    it(`PROV-8 returns the failure ${failure} when provision throws ${description}`, async () => {
      const { provision } = createPluginFixture(pluginThrowing(error))
      expect(await provision()).toEqual({ is: 'failed', failure, message: 'boom' })
    })
  }

  it('returns ignored for an IgnoredError', async () => {
    const error = new IgnoredError('node b provisions it')
    const { provision } = createPluginFixture(pluginThrowing(error))
    expect(await provision()).toEqual({ is: 'ignored', message: 'node b provisions it' })
    const { provisioner } = createPluginFixture({ delete: () => Promise.reject(error) })
    const signal = new AbortController().signal
    expect(await provisioner.delete(aVolume(), signal)).toEqual({ is: 'ignored', message: 'node b provisions it' })
  })

  const REJECTED_REQUESTS: [string, RequestFields, Partial<AnyProvisionerPlugin>, RegExp][] = [
    [
      'undeclared parameters',
      { parameters: { teir: 'fast', colour: 'red' } },
      { parameters: { tier: parameter.text({ doc: 'd' }) } },
      /Class "fast" has parameters that example.com\/tiers does not support: "teir", "colour". The provisioner supports "tier"/,
    ],
    [
      'parameters if none is declared',
      { parameters: { a: 'b' } },
      {},
      /does not support: "a". The provisioner supports none/,
    ],
    [
      'an invalid parameter',
      { parameters: { tier: 'warp' } },
      { parameters: { tier: parameter.choice(['fast', 'slow'], { doc: 'which disks' }) } },
      /has "warp" for the parameter "tier" \(which disks\); expected fast or slow/,
    ],
    [
      'a class without a required parameter',
      {},
      { parameters: { server: parameter.text({ doc: 'the filer', required: true }) } },
      /lacks the parameter "server" \(the filer\)/,
    ],
    [
      'selectors if no labels are declared',
      { spec: { selector: { matchLabels: { tier: 'fast' } } } },
      {},
      /does not support: "tier". The provisioner supports no selector: remove the selector, or create a volume with those labels\.$/,
    ],
    [
      'a selector that no declared value satisfies',
      { spec: { selector: { matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['fast', 'slow'] }] } } },
      { labels: { tier: ['fast', 'slow'] } },
      /accepts no value of the label "tier" that example.com\/tiers supports: "fast", "slow"/,
    ],
    ['undeclared access modes', { spec: { accessModes: ['ReadWriteMany'] } }, {}, /does not create ReadWriteMany/],
    [
      'undeclared block volumes',
      { spec: { volumeMode: 'Block' } },
      {},
      /does not create Block volumes, only Filesystem. Request/,
    ],
    ['undeclared mount options', { storageClass: { mountOptions: ['ro'] } }, {}, /has "ro". Remove them from/],
    [
      'undeclared topology keys',
      {
        storageClass: { allowedTopologies: [{ matchLabelExpressions: [{ key: 'zone', values: ['a'] }] }] },
      },
      {},
      /labels that .* does not support: "zone". The provisioner supports none. Remove them from the class/,
    ],
    [
      'data sources',
      { spec: { dataSource: { kind: 'PersistentVolumeClaim', name: 'old' } } },
      {},
      /cannot fill one from the PersistentVolumeClaim "old"/,
    ],
    ['attributes classes', { spec: { volumeAttributesClassName: 'gold' } }, {}, /attributes class "gold"/],
    [
      'requests for other resources',
      { spec: { resources: { requests: { storage: '1Gi', iops: '100' } } } },
      {},
      /does not support requests for iops/,
    ],
  ]
  for (const [description, fields, overrides, expectedMessage] of REJECTED_REQUESTS) {
    it(`PROV-10 rejects ${description} without calling the plugin`, async () => {
      const { requests, provision } = createPluginFixture(overrides)
      const result = await provision(fields)
      const message = expect.stringMatching(expectedMessage)
      expect(result).toEqual({ is: 'failed', failure: 'infeasible', message, isNotCalled: true })
      expect(requests).toEqual([])
    })
  }

  it('PROV-9 ignores a claim with a data source of an unknown kind', async () => {
    const { requests, provision } = createPluginFixture()
    const dataSourceRef = { apiGroup: 'db.example.com', kind: 'Dump', name: 'd' }
    expect(await provision({ spec: { dataSourceRef } })).toMatchObject({ is: 'ignored' })
    expect(requests).toEqual([])
  })

  it('PROV-10 accepts an empty selector', async () => {
    expect(await createPluginFixture().provision({ spec: { selector: {} } })).toMatchObject({ is: 'provisioned' })
  })

  it('PROV-12 returns the volume of an earlier attempt even if the class is now rejected', async () => {
    const queries: unknown[] = []
    const { provision } = createPluginFixture({
      async find(query) {
        queries.push(query)
        return { sizeBytes: GI, source: NFS }
      },
    })
    expect(await provision({ parameters: { unknown: '1' } })).toMatchObject({ is: 'provisioned' })
    expect(queries).toEqual([{ volumeName: 'pvc-u-1', sizeBytes: GI }])
  })

  it('PROV-12 returns noChange if the search for the volume of an earlier attempt fails', async () => {
    const { provision } = createPluginFixture({ find: () => Promise.reject(new Error('filer is down')) })
    const result = await provision({ parameters: { unknown: '1' } })
    expect(result).toMatchObject({
      is: 'failed',
      failure: 'noChange',
      message: expect.stringContaining('filer is down'),
    })
  })

  const INVALID_RESULTS: [string, Partial<ProvisionedVolume>, RequestFields, RegExp][] = [
    [
      'labels that do not satisfy the selector',
      { labels: { tier: 'slow' } },
      { spec: { selector: { matchLabels: { tier: 'fast' } } } },
      /labels \{"tier":"slow"\} do not satisfy/,
    ],
    [
      'a size above the limit of the claim',
      { sizeBytes: 3n * GI },
      { spec: { resources: { requests: { storage: '1Gi' }, limits: { storage: '2Gi' } } } },
      /limit is 2147483648/,
    ],
    ['two sources', { source: { ...NFS, local: { path: '/x' } } as never }, {}, /has 2 sources/],
    ['an unknown source', { source: { floppy: {} } as never }, {}, /"floppy" is not one of/],
    ['a fractional size', { sizeBytes: 0.5 }, {}, /its sizeBytes is 0.5, but must be a positive integer/],
    ['a size that is not a number', { sizeBytes: 'much' as never }, {}, /its sizeBytes is 'much'/],
    ['labels that are not an object', { labels: null as never }, {}, /its labels is null, but must be an object/],
    ['annotations that are not an object', { annotations: ['a'] as never }, {}, /its annotations is \[ 'a' \]/],
    [
      'mount options that are not a list',
      { mountOptions: 'ro' as never },
      {},
      /its mountOptions is 'ro', but must be an array/,
    ],
    ['topologies that are not objects', { reachableFrom: [null] as never }, {}, /its reachableFrom is \[ null \]/],
    [
      'reserved annotations',
      { annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } },
      {},
      /are reserved for Kubernetes/,
    ],
    ['invalid labels', { labels: { 'a b': 'c' } }, {}, /its label "a b" is invalid/],
    [
      'a topology that the class does not allow',
      { reachableFrom: [{ zone: 'b' }] },
      { storageClass: { allowedTopologies: [{ matchLabelExpressions: [{ key: 'zone', values: ['a'] }] }] } },
      /allowedTopologies/,
    ],
    [
      'no topology, if the class restricts it',
      {},
      { storageClass: { allowedTopologies: [{ matchLabelExpressions: [{ key: 'zone', values: ['a'] }] }] } },
      /allowedTopologies/,
    ],
  ]
  for (const [description, volume, fields, message] of INVALID_RESULTS) {
    it(`PROV-11 rejects and deletes a volume with ${description}`, async () => {
      const { deletedVolumes, provision } = createPluginFixture({
        labels: { tier: ['fast', 'slow'] },
        topologyKeys: ['zone'],
        ...pluginReturning(volume),
      })
      const result = await provision(fields)
      expect(result).toMatchObject({ is: 'failed', message: expect.stringMatching(message) })
      expect(result).toMatchObject({ failure: 'final' })
      expect(deletedVolumes).toHaveLength(1)
    })
  }

  it('PROV-12 returns unfinished for an unusable volume that cannot be deleted', async () => {
    const { provision } = createPluginFixture({
      ...pluginReturning({ labels: { 'a b': 'c' } }),
      delete: () => Promise.reject(new Error('busy')),
    })
    const result = await provision()
    expect(result).toMatchObject({ is: 'failed', failure: 'unfinished', message: expect.stringContaining('busy') })
  })

  for (const returned of [undefined, null, 'pvc-1', 7, {}, { sizeBytes: 1 }, { source: {} }, { source: 'nfs' }]) {
    it(`PROV-12 returns unfinished, and reports a bug in the plugin, if it returns ${JSON.stringify(returned)}`, async () => {
      const { deletedVolumes, provision } = createPluginFixture({ provision: async () => returned as never })
      const message =
        'example.com/tiers returned no volume. This is a bug in the provisioner; whether it created one is unknown.'
      expect(await provision()).toEqual({ is: 'failed', failure: 'unfinished', message })
      expect(deletedVolumes).toEqual([])
    })
  }

  describe('with a sensitive parameter', () => {
    const parameters = { key: parameter.text({ doc: 'the key', sensitive: true, pattern: /^k-/ }) }
    const secret = 'k-hunter2'

    it('PROV-16 redacts the value in messages of the plugin', async () => {
      const { provision } = createPluginFixture({
        parameters,
        ...pluginThrowing(new Error(`PUT https://u:${secret}@filer failed`)),
      })
      const result = await provision({ parameters: { key: secret } })
      expect(result).toMatchObject({ message: 'PUT https://u:***@filer failed' })
    })

    it('PROV-16 redacts the value of an earlier request in every later error', async () => {
      const error = new Error(`login with ${secret} failed`)
      const { provisioner, provision } = createPluginFixture({
        parameters,
        ...pluginThrowing(error),
        delete: pluginThrowing(error).provision,
      })
      await provision({ parameters: { key: secret } })
      expect(await provision({ parameters: { key: 'k-other' } })).toMatchObject({ message: 'login with *** failed' })
      const volume = { metadata: { name: 'pv-1' }, spec: {} } as never
      const result = await provisioner.delete(volume, new AbortController().signal)
      expect(result).toEqual({ is: 'failed', message: 'login with *** failed' })
    })

    it('PROV-16 redacts an invalid value', async () => {
      const { provision } = createPluginFixture({ parameters })
      const result = await provision({ parameters: { key: 'hunter2' } })
      expect(JSON.stringify(result)).not.toContain('hunter2')
      expect(result).toMatchObject({ failure: 'infeasible', message: expect.stringContaining('"key"') })
    })

    it('PROV-16 rejects a volume that contains the value', async () => {
      const { deletedVolumes, provision } = createPluginFixture({
        parameters,
        ...pluginReturning({ annotations: { 'example.com/login': secret } }),
      })
      const result = await provision({ parameters: { key: secret } })
      expect(result).toMatchObject({ failure: 'final', message: expect.stringContaining('sensitive') })
      expect(JSON.stringify(result)).not.toContain(secret)
      expect(deletedVolumes).toHaveLength(1)
    })
  })

  it('PROV-14 passes the volume to delete and returns errors as failures', async () => {
    const { deletedVolumes, provisioner } = createPluginFixture()
    const signal = new AbortController().signal
    expect(await provisioner.delete(aVolume(), signal)).toEqual({ is: 'deleted' })
    expect(deletedVolumes).toEqual([
      { name: 'pvc-u-1', source: NFS, sizeBytes: GI, labels: {}, annotations: { 'example.com/id': '7' } },
    ])
    const failingFixture = createPluginFixture({ delete: () => Promise.reject(new Error('filer is down')) })
    expect(await failingFixture.provisioner.delete(aVolume(), signal)).toEqual({
      is: 'failed',
      message: 'filer is down',
    })
  })

  it('PROV-20 owns the volumes that the plugin owns, and none if owns is not implemented or throws', () => {
    const owns = ({ source }: ExistingVolume) => source.nfs?.server === 'filer'
    expect(createPluginFixture({ owns }).provisioner.owns(aVolume())).toBe(true)
    expect(createPluginFixture({ owns }).provisioner.owns(aVolume({ nfs: { server: 'other', path: '/' } }))).toBe(false)
    expect(createPluginFixture().provisioner.owns(aVolume())).toBe(false)
    const throwingFixture = createPluginFixture({
      owns() {
        throw new Error('a bug')
      },
    })
    expect(throwingFixture.provisioner.owns(aVolume())).toBe(false)
  })

  it('PROV-20 rejects the deletion of a volume whose source the plugin does not own, without calling the plugin', async () => {
    const { deletedVolumes, provisioner } = createPluginFixture({ owns: () => false })
    const result = await provisioner.delete(aVolume(), new AbortController().signal)
    const message = expect.stringContaining('Nothing was changed')
    expect(result).toEqual({ is: 'failed', message, isForeign: true })
    expect(deletedVolumes).toEqual([])
  })

  describe('a call that exceeds its timeout', () => {
    /** Starts a call of the plugin. `onAbort` is called when the call is aborted, and can settle it with `end`. */
    async function startCall(onAbort: (reason: unknown, end: ReturnType<typeof createDeferred>) => void) {
      const end = createDeferred()
      const { clock, provisioner } = createPluginFixture({
        provision(_request, { signal }) {
          signal.addEventListener('abort', () => onAbort(signal.reason, end))
          return end.promise
        },
      })
      const overdueMessages: string[] = []
      const onOverdue = (message: string) => void overdueMessages.push(message)
      const result = provisioner.provision(aRequest(), new AbortController().signal, undefined, onOverdue)
      await clock.nextTurn()
      return { clock, end, overdueMessages, result }
    }

    it('PROV-8 is aborted and returns its error with the timeout', async () => {
      const timeout = 'example.com/tiers did not finish within the timeout of 600 s'
      const cases: [(reason: unknown) => unknown, string][] = [
        [(reason) => reason, `${timeout}.`],
        [() => new Error('This operation was aborted'), `${timeout}: This operation was aborted`],
      ]
      for (const [thrown, message] of cases) {
        let isAborted = false
        const { clock, overdueMessages, result } = await startCall((reason, end) => {
          isAborted = true
          end.reject(thrown(reason))
        })
        await clock.advance(599_999)
        expect(isAborted).toBe(false)
        await clock.advance(1)
        expect(await result).toEqual({ is: 'failed', failure: 'unfinished', message })
        await clock.advance(3_600_000)
        expect(overdueMessages).toEqual([])
      }
    })

    it('PROV-8 can report that it created no volume', async () => {
      const { clock, result } = await startCall((_reason, end) => end.reject(new NotCreatedError('undone')))
      await clock.advance(600_000)
      expect(await result).toMatchObject({ failure: 'final', message: expect.stringContaining('600 s: undone') })
    })

    it('PROV-8 is reported repeatedly and awaited until it returns', async () => {
      const { clock, end, overdueMessages, result } = await startCall(() => {})
      await clock.advance(600_999)
      expect(overdueMessages).toEqual([])
      await clock.advance(1)
      expect(overdueMessages).toEqual([
        expect.stringMatching(/did not finish within the timeout of 600 s and did not stop .* is awaited/),
      ])
      await clock.advance(600_000)
      expect(overdueMessages).toHaveLength(2)
      end.resolve({ sizeBytes: GI, source: NFS })
      expect(await result).toMatchObject({ is: 'provisioned' })
      await clock.advance(3_600_000)
      expect(overdueMessages).toHaveLength(2)
    })

    it('PROV-14 is reported if it deletes a volume', async () => {
      const { clock, provisioner } = createPluginFixture({ delete: () => new Promise(() => {}) })
      const overdueMessages: string[] = []
      void provisioner.delete(aVolume(), new AbortController().signal, (message) => void overdueMessages.push(message))
      await clock.advance(601_000)
      expect(overdueMessages).toEqual([expect.stringContaining('within the timeout of 600 s')])
    })
  })

  it('PROV-8 aborts calls when the process stops and starts no calls afterwards', async () => {
    const stop = new AbortController()
    let calls = 0
    const { clock, provisioner } = createPluginFixture({
      provision(_request, { signal }) {
        calls++
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    })
    const abortedCall = provisioner.provision(aRequest(), stop.signal)
    await clock.nextTurn()
    stop.abort(new Error('stopped by SIGTERM'))
    expect(await abortedCall).toEqual({ is: 'failed', failure: 'unfinished', message: 'stopped by SIGTERM' })
    const laterResult = await provisioner.provision(aRequest(), stop.signal)
    expect(laterResult).toMatchObject({
      failure: 'noChange',
      message: 'example.com/tiers was not called: stopped by SIGTERM.',
    })
    expect(calls).toBe(1)
  })
})

import { create, type Message } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import type { Kind } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { secretKind } from '../../api/kinds/secret/secret.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import type { Logger } from '../../base/log.ts'
import { callDriver, createServiceClients } from '../../csi/driver.ts'
import { Controller, Node } from '../../csi/gen/csi_pb.js'
import { type CsiDriver, CsiError } from '../../csi/index.ts'
import { runUntilSettled } from '../environment/run-until-settled.ts'
import { createSimulation } from '../environment/simulation.ts'
import type { Setup } from '../plan/plan.ts'
import { createInitialObjects } from './initial-objects.ts'
import { createSystem } from './system.ts'
import { createView } from './view.ts'

const MINUTE_MS = 60_000
/** The number of times that each call for a volume fails before it succeeds. */
const FAILURES_PER_CALL = 2
const NAMESPACE = 'team-a'
const PURPOSES = [
  'provisioner',
  'controller-publish',
  'node-stage',
  'node-publish',
  'controller-expand',
  'node-expand',
  'controller-modify',
] as const
const SETUP: Setup = {
  nodes: 1,
  controlReplicas: 1,
  driverControllers: 'in-process',
  commits: 'atomic',
  capacityReservation: false,
  expansionQuota: 'high-water-mark',
  netExpandsWithoutNode: false,
}

const METHODS_WITH_SECRETS = [...Controller.methods, ...Node.methods].filter(({ input }) =>
  input.fields.some(({ name }) => name === 'secrets'),
)
/** Stowage does not make these calls. */
const UNUSED_METHODS = [
  'ValidateVolumeCapabilities',
  'CreateSnapshot',
  'DeleteSnapshot',
  'ListSnapshots',
  'GetSnapshot',
]

const credentialOf = (purpose: string) => `§${purpose}/credential§`
const formsOf = (value: string) => [value, encodeURIComponent(value), Buffer.from(value).toString('base64')]

/** Fails the first calls with secrets for each volume with an error that quotes the secrets this process has sent so far. */
function createQuotingDriver(driver: CsiDriver, quotedSecrets: Set<string>, failures: Map<string, number>): CsiDriver {
  return createServiceClients(async (method, request: Message, options) => {
    const { secrets, volumeId, name } = request as unknown as {
      secrets?: Record<string, string>
      volumeId?: string
      name?: string
    }
    if (!secrets) return callDriver(driver, method, request, options)
    for (const value of Object.values(secrets)) quotedSecrets.add(value)
    const key = `${method.name} ${volumeId ?? name}`
    const count = failures.get(key) ?? 0
    failures.set(key, count + 1)
    if (count >= FAILURES_PER_CALL) return callDriver(driver, method, create(method.input, request as never), options)
    throw new CsiError('INTERNAL', `login failed: ${[...quotedSecrets].flatMap(formsOf).join(' ')}`)
  })
}

describe('secrets', () => {
  it('PROV-16 reach no object, event, condition, log line, metric or trace if a driver quotes them in errors', async () => {
    const lines: string[] = []
    const write = (fields: object, message: string) => void lines.push(JSON.stringify({ ...fields, message }))
    const log: Logger = { debug: write, info: write, warn: write, error: write }
    const simulation = createSimulation(1, { log, linesMax: 100_000 })
    /** A process masks the secrets that it has sent itself. It cannot know those of other processes. */
    const quotedByProcess = new Map<string, Set<string>>()
    const failures = new Map<string, number>()
    const system = await createSystem(simulation, SETUP, {
      wrapDriver: ({ name }, driver) => {
        const quotedSecrets = quotedByProcess.get(name) ?? new Set()
        quotedByProcess.set(name, quotedSecrets)
        return createQuotingDriver(driver, quotedSecrets, failures)
      },
    })
    const { cluster } = system
    const storedTexts: string[] = []
    const view = createView(cluster)
    view.onWrites((writes) => {
      for (const { key, value } of writes)
        if (value && !key.includes('core/secrets/')) storedTexts.push(`${key} ${Buffer.from(value)}`)
    })
    const client = cluster.directClient()!
    const wait = <T>(work: Promise<T>) => runUntilSettled(simulation, work, 'the API server')
    const add = (kind: unknown, object: object) => wait(client.create(kind as Kind, object as never))
    const until = (condition: () => boolean, waitingFor: string) =>
      simulation.runUntil(condition, { withinMs: 30 * MINUTE_MS, waitingFor })
    await wait(createInitialObjects(client, SETUP))
    system.start()

    for (const purpose of PURPOSES)
      await add(secretKind, {
        metadata: { namespace: NAMESPACE, name: purpose },
        data: { password: Buffer.from(credentialOf(purpose)).toString('base64') },
      })
    const parameters = Object.fromEntries(
      PURPOSES.flatMap((purpose) => [
        [`csi.storage.k8s.io/${purpose}-secret-name`, purpose],
        [`csi.storage.k8s.io/${purpose}-secret-namespace`, NAMESPACE],
      ]),
    )
    const classFields = { provisioner: 'net.sim', reclaimPolicy: 'Delete', allowVolumeExpansion: true, parameters }
    await add(storageClassKind, { metadata: { name: 'with-secrets' }, ...classFields })
    const ref = { namespace: NAMESPACE, name: 'data' }
    const key = `${NAMESPACE}/data`
    await add(persistentVolumeClaimKind, {
      metadata: ref,
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'with-secrets',
        volumeAttributesClassName: 'silver',
        resources: { requests: { storage: '2Gi' } },
      },
    })
    const container = { name: 'app', image: 'app', volumeMounts: [{ name: 'data', mountPath: '/data' }] }
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }]
    await add(podKind, { metadata: { ...ref, name: 'app' }, spec: { containers: [container], volumes } })
    await until(() => view.pods.get(`${NAMESPACE}/app`)?.status?.phase === 'Running', 'the pod')
    const spec = { volumeAttributesClassName: 'gold', resources: { requests: { storage: '3Gi' } } }
    await wait(client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body: { spec } }))
    await until(() => {
      const status = view.claims.get(key)?.status
      return status?.capacity?.storage === '3Gi' && status.currentVolumeAttributesClassName === 'gold'
    }, 'the expansion and the modification')
    await wait(client.delete(podKind, { ...ref, name: 'app' }))
    await wait(client.delete(persistentVolumeClaimKind, ref))
    await until(() => view.volumes.size === 0, 'the deletion of the volume')
    await simulation.runFor(MINUTE_MS)

    const methods = new Set([...failures.keys()].map((failure) => failure.split(' ')[0]))
    expect([...methods, ...UNUSED_METHODS].sort()).toEqual(METHODS_WITH_SECRETS.map(({ name }) => name).sort())
    expect([...quotedByProcess.values()].flatMap((quotedSecrets) => [...quotedSecrets]).sort()).toEqual(
      PURPOSES.map(credentialOf).sort(),
    )
    const metrics = await Promise.all(system.registries.map(({ registry }) => registry.metrics()))
    system.dispose()
    const sinks = { stored: storedTexts, lines, metrics, trace: simulation.trace() }
    for (const [sink, texts] of Object.entries(sinks)) {
      expect(texts.length, sink).toBeGreaterThan(0)
      const leaks = texts.filter((text) =>
        PURPOSES.flatMap((purpose) => formsOf(credentialOf(purpose))).some((form) => text.includes(form)),
      )
      expect(leaks[0], sink).toBeUndefined()
    }
    // Every kind of text was produced: otherwise nothing would have been tested.
    const maskedTexts = storedTexts.filter((text) => text.includes('login failed: ***')).join('\n')
    for (const text of [
      'ProvisioningFailed',
      'VolumeResizeFailed',
      'VolumeModifyFailed',
      'FailedAttachVolume',
      'FailedMount',
      'attachError',
      'VolumeFailedDelete',
    ])
      expect(maskedTexts).toContain(text)
    expect(lines.join('\n')).toContain('login failed: ***')
  })
})

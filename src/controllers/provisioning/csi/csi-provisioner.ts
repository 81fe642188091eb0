// The Provisioner of a CSI driver: CreateVolume and DeleteVolume. prepare-request.ts builds the request, build-volume.ts
// converts the reply, src/csi/errors.ts classifies failures.

import { volumeAttributesClassKind } from '../../../api/kinds/attributes-class/attributes-class.ts'
import type { VolumeAttributesClass } from '../../../api/kinds/attributes-class/attributes-class-schema.ts'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { csiNodeKind } from '../../../api/kinds/csi-node/csi-node.ts'
import { nodeKind } from '../../../api/kinds/node/node.ts'
import { storageClassKind } from '../../../api/kinds/storage-class/storage-class.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import type { Clock, Random } from '../../../base/clock.ts'
import type { Logger } from '../../../base/log.ts'
import type { Client } from '../../../client/index.ts'
import type { Volume } from '../../../csi/gen/csi_pb.js'
import {
  type CsiDriver,
  CsiError,
  classifyCreateFailure,
  type DriverFacts,
  redactCredentials,
} from '../../../csi/index.ts'
import type { Cache, CacheSet, EventRecorder } from '../../../runtime/index.ts'
import type { Credentials } from '../../../volumes/credentials.ts'
import { isReachableFrom } from '../../../volumes/node-affinity.ts'
import type { Deleted, Failure, Provisioned, Provisioner, ProvisionRequest } from '../provisioner.ts'
import { buildVolume, replyProblem } from './build-volume.ts'
import { dataSourceOf, POPULATOR_NOTE } from './data-source.ts'
import { type DeletionCredentials, deletionCredentials } from './deletion-secrets.ts'
import { checkAbilities, hasTopology } from './driver-abilities.ts'
import { createNodeRace, selectedNodeOf } from './node-race.ts'
import { clusterTopologies, oneNodeTopology } from './node-topologies.ts'
import { type CsiProvisionerOptions, DEFAULT_OPTIONS, type NodeDeployment } from './options.ts'
import { type Prepared, prepareRequest, type Topology } from './prepare-request.ts'
import { notNow, Refusal } from './refusal.ts'
import { topologyRequirement } from './topology.ts'
import { createTopologyMemory } from './topology-memory.ts'

export interface CsiProvisionerDeps {
  /** Must not run two calls for one volume at once (src/csi/serialize-calls.ts). */
  readonly driver: CsiDriver
  readonly facts: DriverFacts
  readonly client: Client
  readonly caches: CacheSet
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** For the event that a populator will provision the volume. */
  readonly events?: EventRecorder
  readonly options?: Partial<CsiProvisionerOptions>
}

/** Tries to delete a volume that does not satisfy the request, within the time limit of one call. */
const CLEANUP_TRIES_MAX = 5
const IDENTITY_MAX = 10_000

export function createCsiProvisioner(deps: CsiProvisionerDeps): Provisioner {
  const { driver, facts, client, caches, clock, random, log } = deps
  const options = { ...DEFAULT_OPTIONS, ...deps.options }
  const { node, timeoutMs } = options
  const withTopology = hasTopology(facts)
  const placing = withTopology && !node ? { nodes: caches.of(nodeKind), csiNodes: caches.of(csiNodeKind) } : undefined
  const nodes = placing
    ? clusterTopologies({ driverName: facts.name, random, ...placing })
    : oneNodeTopology(node?.name ?? '', node?.segments ?? {})
  const classes = caches.of(storageClassKind)
  let watched: Cache<VolumeAttributesClass> | undefined
  const attributesClasses = () => (watched ??= caches.of(volumeAttributesClassKind))
  const memory = createTopologyMemory()
  /** Claims for which a volume may exist in the driver: bounded by those in progress. */
  const unfinished = new Set<string>()
  const suffix = node ? `-${node.name}` : ''
  const identity = `${clock.nowMs()}-${Math.floor(random() * IDENTITY_MAX)}-${facts.name}${suffix}`

  async function provision(
    given: ProvisionRequest,
    signal: AbortSignal,
    beforeCreate?: () => Promise<void>,
  ): Promise<Provisioned> {
    const { uid } = given.claim.metadata
    if (node && selectedNodeOf(given.claim) !== node.name)
      return ignored(`the claim is not assigned to node ${node.name}`)
    const request = node ? { ...given, selectedNode: node.name } : given
    let prepared: Prepared
    let reportsIo: boolean
    try {
      prepared = await prepare(request, signal)
      // Only our own server has atomic commits, and only it accepts iops and throughput in spec.capacity.
      const { iops, throughput } = prepared.attributes
      reportsIo = iops !== undefined || throughput !== undefined ? await client.commitsAtomically() : false
    } catch (error) {
      return notCalled(error, uid)
    }

    await beforeCreate?.()
    const { controllerPublishReadOnly } = options
    const build = { driverName: facts.name, identity, hasTopology: withTopology, controllerPublishReadOnly, reportsIo }
    let volume: Volume
    try {
      volume = await createVolume(prepared.request, signal)
    } catch (error) {
      const because = messageOf(error, prepared.credentials)
      if (isTaken(error)) {
        const elsewhere = await findElsewhere(prepared.request, signal)
        if (!elsewhere) return { is: 'failed', how: 'noChange', because: because + TAKEN }
        settle(uid)
        return {
          is: 'provisioned',
          volume: { ...buildVolume(request.claim, prepared, elsewhere, build), unwanted: ELSEWHERE },
        }
      }
      const hasSelectedNode = request.selectedNode !== undefined
      return failed(uid, classifyCreateFailure(error, { hasSelectedNode, hasTopology: withTopology }), because)
    }
    const problem = replyProblem(prepared, volume)
    if (problem) return cleanUp(uid, volume, problem, prepared, signal)
    settle(uid)
    return { is: 'provisioned', volume: buildVolume(request.claim, prepared, volume, build) }
  }

  async function createVolume(request: Prepared['request'], signal: AbortSignal): Promise<Volume> {
    const { volume } = await driver.controller.createVolume(request, { timeoutMs, signal })
    if (!volume?.volumeId) throw new Error('CreateVolume returned a volume without volume_id')
    return volume
  }

  /**
   * A process that crashed may have created the volume for a node that is deleted by now. The same request without
   * topology finds it.
   */
  async function findElsewhere(request: Prepared['request'], signal: AbortSignal): Promise<Volume | undefined> {
    const { accessibilityRequirements: where, ...anywhere } = request
    if (!where) return undefined
    try {
      return await createVolume(anywhere, signal)
    } catch {
      return undefined // it differs in more than its topology
    }
  }

  async function prepare(request: ProvisionRequest, signal: AbortSignal): Promise<Prepared> {
    const { uid } = request.claim.metadata
    if (placing) {
      const synced = await Promise.all([placing.nodes.whenSynced(signal), placing.csiNodes.whenSynced(signal)])
      if (!synced.every(Boolean)) throw notNow('stopped before the nodes were known')
    }
    const place = memory.of(uid, request.selectedNode, unfinished.has(uid))
    return prepareRequest(request, place, { client, facts, options, attributesClasses, nodes, log }, signal)
  }

  /** The driver was not called: the result of earlier calls is unchanged. */
  function notCalled(error: unknown, uid: string): Provisioned {
    const because = (error as Error).message
    const how = error instanceof Refusal ? error.how : 'noChange'
    if (how === 'ignored') return ignored(because)
    return { is: 'failed', how: unfinished.has(uid) ? 'noChange' : how, because, isNotCalled: true }
  }

  function failed(uid: string, how: Failure, because: string): Provisioned {
    if (how === 'unfinished') unfinished.add(uid)
    else settle(uid)
    return { is: 'failed', how, because }
  }

  function settle(uid: string): void {
    unfinished.delete(uid)
    memory.forget(uid)
  }

  /** Until it is deleted, only repeating the request can find it. */
  async function cleanUp(uid: string, volume: Volume, problem: string, prepared: Prepared, signal: AbortSignal) {
    const { credentials } = prepared
    const untilMs = clock.monotonicMs() + timeoutMs
    let last = 'there was no time left'
    for (let tries = 0; tries < CLEANUP_TRIES_MAX; tries++) {
      const leftMs = untilMs - clock.monotonicMs()
      if (leftMs <= 0 || signal.aborted) break
      try {
        const request = { volumeId: volume.volumeId, secrets: { ...credentials } }
        await driver.controller.deleteVolume(request, { timeoutMs: leftMs, signal })
        return failed(uid, 'final', `${problem}. The volume was deleted again`)
      } catch (error) {
        last = messageOf(error, credentials)
      }
    }
    return failed(uid, 'unfinished', `${problem}. Cleanup of volume ${prepared.request.name} failed: ${last}`)
  }

  async function remove(volume: Readonly<PersistentVolume>, signal: AbortSignal): Promise<Deleted> {
    const { csi } = volume.spec ?? {}
    const { name } = volume.metadata
    if (!csi) {
      const because = `volume ${name} is not a CSI volume: delete its storage by hand, then the volume`
      return { is: 'failed', because, isForeign: true }
    }
    if (csi.driver !== facts.name) {
      const because = `volume ${name} belongs to the CSI driver ${csi.driver}, and this is ${facts.name}`
      return { is: 'failed', because, isForeign: true }
    }
    let found: DeletionCredentials
    try {
      if (node && !isHere(volume, node)) return ignored('PV was not provisioned on this node')
      checkAbilities(facts)
      found = await credentialsToDelete(volume, signal)
    } catch (error) {
      return { is: 'failed', because: (error as Error).message }
    }
    try {
      const request = { volumeId: csi.volumeHandle, secrets: { ...found.credentials } }
      await driver.controller.deleteVolume(request, { timeoutMs, signal })
      return { is: 'deleted' }
    } catch (error) {
      return { is: 'failed', because: messageOf(error, found.credentials) + unauthenticated(error, found) }
    }
  }

  async function credentialsToDelete(volume: Readonly<PersistentVolume>, signal: AbortSignal) {
    if (!(await classes.whenSynced(signal))) throw notNow('stopped before the classes were known')
    const classOf = (name: string) => classes.get({ name })
    return deletionCredentials(volume, { client, own: options.credentials?.(), classOf }, signal)
  }

  async function hasCapacity(given: Omit<ProvisionRequest, 'volumeName'>, signal: AbortSignal): Promise<boolean> {
    if (!facts.controller.has('GET_CAPACITY')) return true
    const volumeName = `pvc-${given.claim.metadata.uid}` // read by secret templates only
    const { request, requiredBytes } = await prepare({ ...given, volumeName, selectedNode: node?.name }, signal)
    const { volumeCapabilities, parameters, accessibilityRequirements } = request
    const places: (Topology | undefined)[] = accessibilityRequirements?.requisite ?? [undefined]
    for (const accessibleTopology of places) {
      const capacityRequest = { volumeCapabilities, parameters, ...(accessibleTopology ? { accessibleTopology } : {}) }
      const { availableCapacity } = await driver.controller.getCapacity(capacityRequest, { timeoutMs, signal })
      if (availableCapacity >= requiredBytes) return true
    }
    return false
  }

  function isAllowedHere({ claim, storageClass }: Omit<ProvisionRequest, 'volumeName'>): boolean {
    const { allowedTopologies = [] } = storageClass
    if (allowedTopologies.length === 0 || !withTopology) return true
    try {
      topologyRequirement({
        claimName: claim.metadata.name,
        selectedNode: node?.name,
        allowedTopologies,
        strict: options.strictTopology,
        immediate: options.immediateTopology,
        nodes,
        memory: { node: node?.name },
      })
      return true
    } catch (error) {
      if (error instanceof Refusal) return false
      throw error
    }
  }

  const claims = caches.of(persistentVolumeClaimKind)
  const race = node && createNodeRace({ node, client, claims, clock, random, log, isAllowedHere, hasCapacity })

  return {
    name: facts.name,
    ...(node ? { instance: node.name } : {}),
    provision,
    delete: remove,
    owns: (volume) => volume.spec?.csi?.driver === facts.name,
    async accepts(given, signal) {
      if (isForPopulator(given)) {
        const note = { type: 'Normal', reason: 'Provisioning', message: POPULATOR_NOTE } as const
        deps.events?.record(persistentVolumeClaimKind, given.claim, note)
        return false
      }
      return race ? race.accepts(given, signal) : true
    },
    forget: settle,
  }
}

const ignored = (because: string) => ({ is: 'ignored', because }) as const

function isForPopulator({ claim }: Omit<ProvisionRequest, 'volumeName'>): boolean {
  try {
    dataSourceOf(claim)
    return false
  } catch (error) {
    return error instanceof Refusal && error.how === 'ignored'
  }
}

/**
 * A volume of this name exists from an earlier try with a different request: final for this request, but that volume still
 * exists.
 */
const isTaken = (error: unknown): boolean => error instanceof CsiError && error.codeName === 'ALREADY_EXISTS'
const ELSEWHERE = 'an earlier try created it for another node'
const TAKEN =
  '. A volume of this name exists and does not match the request: restore the class as it was, or delete the volume in the storage'

/** The message of a failed call, without credentials. */
function messageOf(error: unknown, credentials: Credentials): string {
  const text = error instanceof CsiError ? error.rpcText : (error as Error).message
  return redactCredentials(text, credentials)
}

/** Codes with which drivers report missing credentials, among other things. */
const ASKING_FOR_CREDENTIALS: readonly string[] = ['UNAUTHENTICATED', 'PERMISSION_DENIED', 'INVALID_ARGUMENT']

function unauthenticated(error: unknown, { missing }: DeletionCredentials): string {
  if (!missing || !(error instanceof CsiError) || !ASKING_FOR_CREDENTIALS.includes(error.codeName)) return ''
  return `. No credentials were sent, because ${missing}. If the driver needs some, give them to the provisioner itself (--provisioner-secret-dir)`
}

/** Without a topology, every volume is reachable. */
const isHere = (volume: Readonly<PersistentVolume>, { name, segments }: NodeDeployment): boolean =>
  segments === undefined || isReachableFrom(volume, { name, labels: segments })

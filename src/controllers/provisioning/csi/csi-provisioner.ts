// Implements Provisioner with CreateVolume and DeleteVolume of a CSI driver. prepare-request.ts builds the request,
// build-volume.ts converts the reply, and src/csi/errors.ts classifies failures.

import type { KubeObject } from '../../../api/kind.ts'
import { volumeAttributesClassKind } from '../../../api/kinds/attributes-class/attributes-class.ts'
import type { VolumeAttributesClass } from '../../../api/kinds/attributes-class/attributes-class-schema.ts'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { csiNodeKind } from '../../../api/kinds/csi-node/csi-node.ts'
import { isConfirmedOff } from '../../../api/kinds/node/fencing.ts'
import { nodeKind } from '../../../api/kinds/node/node.ts'
import { storageClassKind } from '../../../api/kinds/storage-class/storage-class.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import type { Clock, Random } from '../../../base/clock.ts'
import type { Logger } from '../../../base/log.ts'
import { type OperationDetails, operationDetailsOf } from '../../../base/operation-details.ts'
import type { Client } from '../../../client/index.ts'
import type { Volume } from '../../../csi/gen/csi_pb.js'
import { type CsiDriver, CsiError, classifyCreateFailure, type DriverFacts } from '../../../csi/index.ts'
import type { Cache, CacheSet, EventRecorder } from '../../../runtime/index.ts'
import { isReachableFrom } from '../../../volumes/node-affinity.ts'
import type { DeleteResult, Failure, Provisioner, ProvisionRequest, ProvisionResult } from '../provisioner.ts'
import { buildNewVolume, findReplyProblem } from './build-volume.ts'
import { dataSourceOf, POPULATOR_MESSAGE } from './data-source.ts'
import { type DeletionCredentials, readDeletionCredentials } from './deletion-credentials.ts'
import { checkCapabilities, hasTopology } from './driver-capabilities.ts'
import { createNodeSelection, selectedNodeOf } from './node-selection.ts'
import { clusterTopologies, singleNodeTopology } from './node-topologies.ts'
import { type CsiProvisionerOptions, DEFAULT_OPTIONS, type NodeDeployment } from './options.ts'
import { notReadyError, PreparationError } from './preparation-error.ts'
import { type PreparedRequest, prepareRequest, type Topology } from './prepare-request.ts'
import { topologyRequirement } from './topology.ts'
import { createTopologyCache } from './topology-cache.ts'

export interface CsiProvisionerDeps {
  /** Must not run two calls for one volume concurrently (src/csi/serialize-calls.ts). */
  readonly driver: CsiDriver
  readonly facts: DriverFacts
  readonly client: Client
  readonly caches: CacheSet
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Records the event that a populator will provision the volume. */
  readonly events?: EventRecorder
  readonly options?: Partial<CsiProvisionerOptions>
}

/** Maximum number of attempts to delete a volume that does not satisfy the request, within the timeout of one call. */
const CLEANUP_ATTEMPTS_MAX = 5
const IDENTITY_MAX = 10_000

export function createCsiProvisioner(deps: CsiProvisionerDeps): Provisioner {
  const { driver, facts, client, caches, clock, random, log } = deps
  const options = { ...DEFAULT_OPTIONS, ...deps.options }
  const { node, timeoutMs } = options
  const supportsTopology = hasTopology(facts)
  const topologyCaches =
    supportsTopology && !node ? { nodes: caches.of(nodeKind), csiNodes: caches.of(csiNodeKind) } : undefined
  const nodes = topologyCaches
    ? clusterTopologies({ driverName: facts.name, random, ...topologyCaches })
    : singleNodeTopology(node?.name ?? '', node?.segments ?? {})
  const classes = caches.of(storageClassKind)
  let attributesClassCache: Cache<VolumeAttributesClass> | undefined
  const attributesClasses = () => (attributesClassCache ??= caches.of(volumeAttributesClassKind))
  const topologyCache = createTopologyCache()
  /** Uids of the claims for which a volume may exist in the driver. Bounded by the claims in progress. */
  const unfinishedUids = new Set<string>()
  const suffix = node ? `-${node.name}` : ''
  const identity = `${clock.nowMs()}-${Math.floor(random() * IDENTITY_MAX)}-${facts.name}${suffix}`

  async function provision(
    claimRequest: ProvisionRequest,
    signal: AbortSignal,
    beforeCreate?: () => Promise<void>,
  ): Promise<ProvisionResult> {
    const { uid } = claimRequest.claim.metadata
    if (node && selectedNodeOf(claimRequest.claim) !== node.name)
      return ignoredResult(`the claim is not assigned to node ${node.name}`)
    const request = node ? { ...claimRequest, selectedNode: node.name } : claimRequest
    let preparedRequest: PreparedRequest
    let reportsIo: boolean
    try {
      preparedRequest = await prepare(request, signal)
      // Atomic commits identify the Stowage API server, which alone accepts iops and throughput in spec.capacity.
      const { iops, throughput } = preparedRequest.providedIo
      reportsIo = iops !== undefined || throughput !== undefined ? await client.commitsAtomically() : false
    } catch (error) {
      return preparationFailure(error, uid)
    }

    await beforeCreate?.()
    const { controllerPublishReadOnly } = options
    const buildOptions = {
      driverName: facts.name,
      identity,
      hasTopology: supportsTopology,
      controllerPublishReadOnly,
      reportsIo,
    }
    let volume: Volume
    try {
      volume = await createVolume(preparedRequest.request, signal)
    } catch (error) {
      const message = messageOf(error)
      if (isNameTaken(error)) {
        const existingVolume = await findWithoutTopology(preparedRequest.request, signal)
        if (!existingVolume) return { is: 'failed', failure: 'noChange', message: message + NAME_TAKEN_HINT }
        discardState(uid)
        return {
          is: 'provisioned',
          volume: {
            ...buildNewVolume(request.claim, preparedRequest, existingVolume, buildOptions),
            unusableReason: CREATED_FOR_ANOTHER_NODE,
          },
        }
      }
      const hasSelectedNode = request.selectedNode !== undefined
      return recordFailure(
        uid,
        classifyCreateFailure(error, { hasSelectedNode, hasTopology: supportsTopology }),
        message,
        operationDetailsOf(error),
      )
    }
    const problem = findReplyProblem(preparedRequest, volume)
    if (problem) return cleanUp(uid, volume, problem, preparedRequest, signal)
    discardState(uid)
    return { is: 'provisioned', volume: buildNewVolume(request.claim, preparedRequest, volume, buildOptions) }
  }

  async function createVolume(request: PreparedRequest['request'], signal: AbortSignal): Promise<Volume> {
    const { volume } = await driver.controller.createVolume(request, { timeoutMs, signal })
    if (!volume?.volumeId) throw new Error('CreateVolume returned a volume without volume_id')
    return volume
  }

  /**
   * Finds a volume that a crashed process created for a node that no longer exists, by repeating the request without the
   * topology.
   */
  async function findWithoutTopology(
    request: PreparedRequest['request'],
    signal: AbortSignal,
  ): Promise<Volume | undefined> {
    const { accessibilityRequirements: topology, ...requestWithoutTopology } = request
    if (!topology) return undefined
    try {
      return await createVolume(requestWithoutTopology, signal)
    } catch {
      return undefined // the volume differs in more than its topology, or the call failed
    }
  }

  async function prepare(request: ProvisionRequest, signal: AbortSignal): Promise<PreparedRequest> {
    const { uid } = request.claim.metadata
    if (topologyCaches && needsNodes(request)) await requireSynced(Object.values(topologyCaches), signal)
    const claimTopology = topologyCache.getOrCreate(uid, request.selectedNode, { mustRepeat: unfinishedUids.has(uid) })
    return prepareRequest(request, claimTopology, { client, facts, options, attributesClasses, nodes, log }, signal)
  }

  /** Whether the topology of the request depends on the nodes (topology.ts), and not on the class alone. */
  const needsNodes = ({ selectedNode, storageClass: { allowedTopologies = [] } }: ProvisionRequest): boolean =>
    selectedNode !== undefined || (allowedTopologies.length === 0 && options.immediateTopology)

  /** Throws if this process may not read the nodes, so that the claim waits with an event and occupies no worker. */
  async function requireSynced(nodeCaches: readonly Cache<KubeObject>[], signal: AbortSignal): Promise<void> {
    const syncResults = await Promise.all(nodeCaches.map((cache) => cache.whenSyncedOrNotServed(signal)))
    if (!syncResults.every(Boolean)) throw notReadyError('stopped before the nodes were known')
    if (!nodeCaches.every(({ isSynced }) => isSynced)) {
      throw notReadyError(
        'the topology of the nodes is unknown: the provisioner needs permission to list and watch nodes and csinodes.storage.k8s.io',
      )
    }
  }

  /** Returns the failure of a request that was not sent. The result of earlier calls is unchanged. */
  function preparationFailure(error: unknown, uid: string): ProvisionResult {
    const message = (error as Error).message
    const failure = error instanceof PreparationError ? error.failure : 'noChange'
    if (failure === 'ignored') return ignoredResult(message)
    return { is: 'failed', failure: unfinishedUids.has(uid) ? 'noChange' : failure, message, isNotCalled: true }
  }

  function recordFailure(uid: string, failure: Failure, message: string, details?: OperationDetails): ProvisionResult {
    if (failure === 'unfinished') unfinishedUids.add(uid)
    else discardState(uid)
    return { is: 'failed', failure, message, ...(details ? { details } : {}) }
  }

  function discardState(uid: string): void {
    unfinishedUids.delete(uid)
    topologyCache.delete(uid)
  }

  /** Deletes a volume that does not satisfy the request. Returns unfinished if it cannot be deleted. */
  async function cleanUp(
    uid: string,
    volume: Volume,
    problem: string,
    preparedRequest: PreparedRequest,
    signal: AbortSignal,
  ) {
    const { credentials } = preparedRequest
    const untilMs = clock.monotonicMs() + timeoutMs
    let lastError = 'the provisioner is stopping'
    for (let attempt = 0; attempt < CLEANUP_ATTEMPTS_MAX; attempt++) {
      const remainingMs = untilMs - clock.monotonicMs()
      if (remainingMs <= 0 || signal.aborted) break
      try {
        const request = { volumeId: volume.volumeId, secrets: { ...credentials } }
        await driver.controller.deleteVolume(request, { timeoutMs: remainingMs, signal })
        return recordFailure(uid, 'final', `${problem}. The volume was deleted`)
      } catch (error) {
        lastError = messageOf(error)
      }
    }
    return recordFailure(
      uid,
      'unfinished',
      `${problem}. Cleanup of volume ${preparedRequest.request.name} failed: ${lastError}`,
    )
  }

  async function deleteVolume(volume: Readonly<PersistentVolume>, signal: AbortSignal): Promise<DeleteResult> {
    const { csi } = volume.spec ?? {}
    const { name } = volume.metadata
    if (!csi) {
      const message = `volume ${name} is not a CSI volume: back up its data if it is needed, delete its storage manually, then the volume`
      return { is: 'failed', message, isForeign: true }
    }
    if (csi.driver !== facts.name) {
      const message = `volume ${name} belongs to the CSI driver ${csi.driver}, but this provisioner deletes volumes of ${facts.name}`
      return { is: 'failed', message, isForeign: true }
    }
    let deletionCredentials: DeletionCredentials
    try {
      if (node && !isOnNode(volume, node)) return ignoredResult('PV was not provisioned on this node')
      checkCapabilities(facts)
      deletionCredentials = await readVolumeCredentials(volume, signal)
    } catch (error) {
      return { is: 'failed', message: (error as Error).message }
    }
    try {
      const request = { volumeId: csi.volumeHandle, secrets: { ...deletionCredentials.credentials } }
      await driver.controller.deleteVolume(request, { timeoutMs, signal })
      return { is: 'deleted' }
    } catch (error) {
      return {
        is: 'failed',
        message: messageOf(error) + missingCredentialsHint(error, deletionCredentials),
        details: operationDetailsOf(error),
      }
    }
  }

  async function readVolumeCredentials(volume: Readonly<PersistentVolume>, signal: AbortSignal) {
    if (!(await classes.whenSynced(signal))) throw notReadyError('stopped before the classes were known')
    const classOf = (name: string) => classes.get({ name })
    return readDeletionCredentials(volume, { client, processCredentials: options.credentials?.(), classOf }, signal)
  }

  async function hasCapacity(
    claimRequest: Omit<ProvisionRequest, 'volumeName'>,
    signal: AbortSignal,
  ): Promise<boolean> {
    if (!facts.controller.has('GET_CAPACITY')) return true
    const volumeName = `pvc-${claimRequest.claim.metadata.uid}` // no volume of this name is created here
    const { request, requiredBytes } = await prepare({ ...claimRequest, volumeName, selectedNode: node?.name }, signal)
    const { volumeCapabilities, parameters, accessibilityRequirements } = request
    const topologies: (Topology | undefined)[] = accessibilityRequirements?.requisite ?? [undefined]
    for (const accessibleTopology of topologies) {
      const capacityRequest = { volumeCapabilities, parameters, ...(accessibleTopology ? { accessibleTopology } : {}) }
      const { availableCapacity } = await driver.controller.getCapacity(capacityRequest, { timeoutMs, signal })
      if (availableCapacity >= requiredBytes) return true
    }
    return false
  }

  function isNodeAllowed({ claim, storageClass }: Omit<ProvisionRequest, 'volumeName'>): boolean {
    const { allowedTopologies = [] } = storageClass
    if (allowedTopologies.length === 0 || !supportsTopology) return true
    try {
      topologyRequirement({
        claimName: claim.metadata.name,
        selectedNode: node?.name,
        allowedTopologies,
        strict: options.strictTopology,
        immediate: options.immediateTopology,
        nodes,
        claimTopology: { node: node?.name },
      })
      return true
    } catch (error) {
      if (error instanceof PreparationError) return false
      throw error
    }
  }

  const claims = caches.of(persistentVolumeClaimKind)
  const nodeSelection =
    node && createNodeSelection({ node, client, claims, clock, random, log, isNodeAllowed, hasCapacity })

  return {
    name: facts.name,
    ...(node ? { instance: node.name } : {}),
    provision,
    delete: deleteVolume,
    owns: (volume) => volume.spec?.csi?.driver === facts.name,
    async accepts(claimRequest, signal) {
      if (hasPopulator(claimRequest)) {
        const event = { type: 'Normal', reason: 'Provisioning', message: POPULATOR_MESSAGE } as const
        deps.events?.record(persistentVolumeClaimKind, claimRequest.claim, event)
        return false
      }
      return nodeSelection ? nodeSelection.accepts(claimRequest, signal) : true
    },
    isLostNode: (name) => isConfirmedOff(topologyCaches?.nodes.get({ name })),
    forget: discardState,
  }
}

const ignoredResult = (message: string) => ({ is: 'ignored', message }) as const

function hasPopulator({ claim }: Omit<ProvisionRequest, 'volumeName'>): boolean {
  try {
    dataSourceOf(claim)
    return false
  } catch (error) {
    return error instanceof PreparationError && error.failure === 'ignored'
  }
}

/**
 * Whether the driver already has a volume of this name, which an earlier, different request created.
 */
const isNameTaken = (error: unknown): boolean => error instanceof CsiError && error.codeName === 'ALREADY_EXISTS'
const CREATED_FOR_ANOTHER_NODE = 'an earlier attempt created it for another node'
const NAME_TAKEN_HINT =
  '. A volume of this name exists and does not match the request: restore the class as it was, or delete the volume and its data in the storage'

/** Returns a failed call's message. */
function messageOf(error: unknown): string {
  return error instanceof CsiError ? error.rpcText : (error as Error).message
}

/** Codes with which drivers report missing credentials, among other errors. */
const CREDENTIAL_ERROR_CODES: readonly string[] = ['UNAUTHENTICATED', 'PERMISSION_DENIED', 'INVALID_ARGUMENT']

function missingCredentialsHint(error: unknown, { missingReason }: DeletionCredentials): string {
  if (!missingReason || !(error instanceof CsiError) || !CREDENTIAL_ERROR_CODES.includes(error.codeName)) return ''
  return `. No credentials were sent, because ${missingReason}. If the driver requires credentials, pass them to the provisioner (--provisioner-secret-dir)`
}

/** Whether the volume is reachable from the node. If the driver reports no topology, every volume is. */
const isOnNode = (volume: Readonly<PersistentVolume>, { name, segments }: NodeDeployment): boolean =>
  segments === undefined || isReachableFrom(volume, { name, labels: segments })

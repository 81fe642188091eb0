// Prepares a request of CreateVolume: checks the claim against the capabilities of the driver, reads credentials and mutable
// parameters, builds the topology requirement, and protects the data source.

import type { MessageInitShape } from '@bufbuild/protobuf'
import type { SecretReference } from '../../../api/kinds/shared/references-schema.ts'
import { quantitySign, quantityToBytes } from '../../../api/quantity.ts'
import type { Logger } from '../../../base/log.ts'
import type { Client } from '../../../client/index.ts'
import type { CreateVolumeRequestSchema, TopologySchema } from '../../../csi/gen/csi_pb.js'
import type { DriverFacts } from '../../../csi/index.ts'
import { type Credentials, readCredentials } from '../../../volumes/credentials.ts'
import type { ProvisionRequest } from '../provisioner.ts'
import {
  type AttributesDeps,
  checkGates,
  checkOnCreateAmounts,
  type IoAmounts,
  omitOverridden,
  providedIo,
  type RequestedAttributes,
  readMutableParameters,
  requestedAttributes,
} from './attributes.ts'
import { prepareCloneSource } from './clone-source.ts'
import { type DataSource, dataSourceOf } from './data-source.ts'
import { checkCapabilities, hasTopology } from './driver-capabilities.ts'
import type { CsiProvisionerOptions } from './options.ts'
import { driverParameters, fsTypeOf, metadataParameters, type SecretPurpose } from './parameters.ts'
import { finalError } from './preparation-error.ts'
import { resolveSecretRef } from './secret-reference.ts'
import { prepareSnapshotSource } from './snapshot-source.ts'
import { type NodeTopologies, type Term, topologyRequirement } from './topology.ts'
import type { ClaimTopology } from './topology-cache.ts'
import { volumeCapabilities } from './volume-capabilities.ts'

export interface PrepareDeps {
  readonly client: Client
  readonly facts: DriverFacts
  readonly options: CsiProvisionerOptions
  readonly attributesClasses: AttributesDeps['attributesClasses']
  readonly nodes: NodeTopologies
  readonly log: Logger
}

export interface PreparedRequest {
  readonly request: CreateRequest & { readonly name: string }
  readonly requiredBytes: bigint
  readonly fsType: string
  readonly source: DataSource | undefined
  readonly attributes: RequestedAttributes
  /** The iops and throughput of the new volume. Empty if the feature gate is disabled. */
  readonly providedIo: Partial<IoAmounts>
  readonly secretRefs: SecretRefs
  /** The credentials in the request, which must not appear in messages. */
  readonly credentials: Credentials
}

type CreateRequest = MessageInitShape<typeof CreateVolumeRequestSchema>
export type Topology = MessageInitShape<typeof TopologySchema>

/** The secret references of the PV for attaching, mounting and expanding. */
type SecretRefs = Readonly<Partial<Record<keyof typeof VOLUME_SECRETS, SecretReference>>>

const VOLUME_SECRETS = {
  controllerPublishSecretRef: 'controller-publish-secret',
  nodeStageSecretRef: 'node-stage-secret',
  nodePublishSecretRef: 'node-publish-secret',
  controllerExpandSecretRef: 'controller-expand-secret',
  nodeExpandSecretRef: 'node-expand-secret',
} as const satisfies Record<string, SecretPurpose>

export async function prepareRequest(
  request: ProvisionRequest,
  claimTopology: ClaimTopology,
  deps: PrepareDeps,
  signal: AbortSignal,
): Promise<PreparedRequest> {
  const { claim, storageClass, volumeName } = request
  const { client, facts, options, attributesClasses } = deps
  const parameters = storageClass.parameters ?? {}

  const source = dataSourceOf(claim)
  checkGates(claim, options.gates)
  const attributes = requestedAttributes(claim, options.gates)
  checkCapabilities(facts, { source, attributes })
  if (claim.spec?.selector) {
    throw finalError('claim Selector is not supported: a driver creates new volumes; remove the selector or the class')
  }
  if (!volumeName || !claim.metadata.uid) throw finalError('cannot name a volume after a claim without a uid')
  const requestedSize = claim.spec?.resources?.requests?.storage
  if (!requestedSize || quantitySign(requestedSize) <= 0) throw finalError('the claim requests no storage')
  const requiredBytes = quantityToBytes(requestedSize)
  if (requiredBytes > INT64_MAX)
    throw finalError(`the claim requests ${requestedSize}, which exceeds the maximum size of a volume`)
  const fsType = fsTypeOf(parameters, options.defaultFsType)
  const capabilities = volumeCapabilities(claim, {
    fsType,
    mountOptions: storageClass.mountOptions ?? [],
    supportsSingleNodeMultiWriter: facts.controller.has('SINGLE_NODE_MULTI_WRITER'),
  })

  const contentSource = source && (await prepareContentSource(request, source, deps, signal))
  const topology = hasTopology(facts) ? buildTopology(request, claimTopology, deps) : undefined
  const credentials = await readProvisionerCredentials(request, deps, signal)
  const secretRefs = secretRefsOf(request)
  const classParameters = driverParameters(parameters)
  const mutableParameters = await readMutableParameters(
    attributes,
    { client, attributesClasses, driverName: facts.name },
    signal,
  )
  checkOnCreateAmounts(attributes, mutableParameters, classParameters)
  const metadata = options.extraCreateMetadata ? metadataParameters(claim, volumeName) : {}

  return {
    requiredBytes,
    fsType,
    source,
    attributes,
    providedIo: options.gates.enabled('VolumeProvisionedIO')
      ? providedIo(attributes, mutableParameters, classParameters)
      : {},
    secretRefs,
    credentials,
    request: {
      name: volumeName,
      capacityRange: { requiredBytes },
      volumeCapabilities: capabilities,
      parameters: { ...omitOverridden(classParameters, mutableParameters), ...metadata },
      secrets: { ...credentials },
      mutableParameters,
      ...(contentSource ? { volumeContentSource: contentSource } : {}),
      ...(topology ? { accessibilityRequirements: topology } : {}),
    },
  }
}

const INT64_MAX = 2n ** 63n - 1n

async function prepareContentSource(
  { claim }: ProvisionRequest,
  source: DataSource,
  { client, facts, options, log }: PrepareDeps,
  signal: AbortSignal,
): Promise<CreateRequest['volumeContentSource']> {
  const commonDeps = { client, driverName: facts.name }
  if (source.is === 'clone') {
    const volumeId = await prepareCloneSource(claim, source, commonDeps, signal)
    return { type: { case: 'volume', value: { volumeId } } }
  }
  const { preventVolumeModeConversion } = options
  const snapshotId = await prepareSnapshotSource(
    claim,
    source,
    { ...commonDeps, preventVolumeModeConversion, log },
    signal,
  )
  return { type: { case: 'snapshot', value: { snapshotId } } }
}

function buildTopology(
  { claim, storageClass, selectedNode }: ProvisionRequest,
  claimTopology: ClaimTopology,
  { options, nodes }: PrepareDeps,
): CreateRequest['accessibilityRequirements'] {
  const requirement = topologyRequirement({
    claimName: claim.metadata.name,
    selectedNode,
    allowedTopologies: storageClass.allowedTopologies,
    strict: options.strictTopology,
    immediate: options.immediateTopology,
    nodes,
    claimTopology,
  })
  return (
    requirement && {
      requisite: requirement.requisite.map(topologyOf),
      preferred: requirement.preferred.map(topologyOf),
    }
  )
}

const topologyOf = (term: Term): Topology => ({ segments: Object.fromEntries(term) })

/** Returns the credentials from the secret of the class, or those of this process if the class names none. */
async function readProvisionerCredentials(
  { claim, storageClass, volumeName }: ProvisionRequest,
  { client, options }: PrepareDeps,
  signal: AbortSignal,
): Promise<Credentials> {
  const ref = resolveSecretRef('provisioner-secret', storageClass.parameters, { volumeName, claim })
  if (ref) return readCredentials(client, ref, signal)
  return options.credentials?.() ?? {}
}

function secretRefsOf({ claim, storageClass, volumeName }: ProvisionRequest): SecretRefs {
  const entries = Object.entries(VOLUME_SECRETS).flatMap(([field, purpose]) => {
    const ref = resolveSecretRef(purpose, storageClass.parameters, { volumeName, claim })
    return ref ? [[field, { name: ref.name, namespace: ref.namespace }]] : []
  })
  return Object.fromEntries(entries)
}

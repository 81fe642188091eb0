// `stowage provisioner`: flags and help. The flags include those of the upstream external-provisioner, so that the command can
// replace it with the same arguments. run.ts runs the command.
import { FEATURE_GATES, type FeatureGates } from '../../../api/feature-gates.ts'
import type { ListenAddress } from '../../../base/listen-address.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { type CapacityMode, parseEnableCapacity } from '../../../controllers/capacity/options.ts'
import type { AddCommand } from '../../command.ts'
import {
  booleanFlag,
  durationFlag,
  type Flag,
  type FlagValues,
  gatesFlag,
  invalidFlag,
  numberFlag,
  rateFlag,
  readFlags,
  readGates,
  textFlag,
} from '../../flags/flag-types.ts'
import {
  CONNECTION_FLAGS,
  checkElectionFlags,
  ELECTION_FLAGS,
  MONITORING_FLAGS,
  readMonitoring,
} from '../../flags/sidecar.ts'
import { addSidecarCommand } from '../../sidecar-command.ts'

export const PROVISIONER_FLAGS = {
  ...CONNECTION_FLAGS,
  workerThreads: numberFlag(
    '--worker-threads',
    100,
    'maximum number of claims, and of volumes, processed concurrently',
  ),
  retryIntervalStart: durationFlag(
    '--retry-interval-start',
    '1s',
    'delay after the first failure; doubles with every further failure',
  ),
  retryIntervalMax: durationFlag('--retry-interval-max', '5m', 'maximum delay after failures'),
  volumeNamePrefix: textFlag('--volume-name-prefix', 'pvc', 'prefix of volume names'),
  volumeNameUuidLength: numberFlag(
    '--volume-name-uuid-length',
    -1,
    'length of the claim UID in volume names; -1 for the whole UID',
    {
      min: -1,
    },
  ),
  strictTopology: booleanFlag('--strict-topology', false, 'request volumes only in the topology of the selected node'),
  immediateTopology: booleanFlag(
    '--immediate-topology',
    true,
    'pass the topology of the cluster to the driver for classes with Immediate binding',
  ),
  extraCreateMetadata: booleanFlag(
    '--extra-create-metadata',
    false,
    'pass the names of the claim and the volume to the driver',
  ),
  defaultFstype: textFlag('--default-fstype', '', 'file system type if the class does not set one'),
  controllerPublishReadonly: booleanFlag(
    '--controller-publish-readonly',
    false,
    'mark ReadOnlyMany volumes as read-only',
  ),
  preventVolumeModeConversion: booleanFlag(
    '--prevent-volume-mode-conversion',
    true,
    'reject restoring a snapshot with another volume mode unless the snapshot content allows it',
  ),
  cloningProtectionThreads: numberFlag(
    '--cloning-protection-threads',
    1,
    'maximum number of clone sources processed concurrently',
  ),
  snapshotOrphanSweepInterval: durationFlag(
    '--snapshot-orphan-sweep-interval',
    '5m',
    'interval of the search for orphaned snapshot finalizers; 0 to search only at the start',
    { minMs: 0 },
  ),
  provisionerSecretDir: textFlag(
    '--provisioner-secret-dir',
    '',
    'directory with credentials for the driver, one file per key; used for deletion, and if the class has no secret',
  ),
  nodeDeployment: booleanFlag(
    '--node-deployment',
    false,
    'run on every node and provision only volumes of that node ($NODE_NAME)',
  ),
  nodeDeploymentImmediateBinding: booleanFlag(
    '--node-deployment-immediate-binding',
    true,
    'compete with other nodes for claims with Immediate binding',
  ),
  nodeDeploymentBaseDelay: durationFlag(
    '--node-deployment-base-delay',
    '20s',
    'maximum initial delay before a node provisions a claim with Immediate binding',
  ),
  nodeDeploymentMaxDelay: durationFlag(
    '--node-deployment-max-delay',
    '60s',
    'maximum delay before a node provisions a claim with Immediate binding',
  ),
  enableCapacity: {
    flag: '--enable-capacity [true|false|central|local]',
    doc: 'publish storage capacity for the scheduler; true is local with --node-deployment, otherwise central',
    default: 'false',
    read(text: string, name: string) {
      if (!/^(true|false|central|local)$/i.test(text)) throw invalidFlag(name, text, 'true, false, central or local')
      return text
    },
  } satisfies Flag<string>,
  capacityThreads: numberFlag('--capacity-threads', 1, 'maximum number of concurrent GetCapacity calls'),
  capacityPollInterval: durationFlag(
    '--capacity-poll-interval',
    '1m',
    'interval between GetCapacity calls for a topology segment',
  ),
  capacityForImmediateBinding: booleanFlag(
    '--capacity-for-immediate-binding',
    false,
    'publish capacity also for classes with Immediate binding',
  ),
  capacityOwnerrefLevel: numberFlag(
    '--capacity-ownerref-level',
    1,
    'owner of the capacity objects: 0 for this pod ($POD_NAME), 1 for its owner, 2 for the owner of its owner, -1 for none',
    { min: -1 },
  ),
  kubeApiCapacityQps: rateFlag(
    '--kube-api-capacity-qps',
    1,
    'maximum number of capacity object writes per second; -1 for no limit',
  ),
  kubeApiCapacityBurst: numberFlag('--kube-api-capacity-burst', 5, 'maximum burst of capacity object writes'),
  ...ELECTION_FLAGS,
  ...MONITORING_FLAGS,
  featureGates: gatesFlag(FEATURE_GATES.slice(0, 2).join(', ')),
  release: booleanFlag(
    '--release',
    false,
    'remove the finalizers of this provisioner from the claims of the driver and exit, before another provisioner replaces it',
  ),
}

type Values = FlagValues<typeof PROVISIONER_FLAGS>

export interface ProvisionerSettings
  extends Omit<Values, 'featureGates' | 'httpEndpoint' | 'metricsAddress' | 'enableCapacity'> {
  /** Undefined if capacity is not published. */
  readonly capacity: CapacityMode['is'] | undefined
  readonly gates: FeatureGates
  readonly monitoring: ListenAddress | undefined
}

export const addProvisioner: AddCommand = (program, deps) =>
  addSidecarCommand(program, deps, {
    name: 'provisioner',
    summary: 'provision volumes for claims with a CSI driver',
    description:
      'Runs next to a CSI driver, and provisions and deletes its volumes for the claims of any Kubernetes cluster.',
    flags: PROVISIONER_FLAGS,
    example: '--csi-address /run/csi/socket --kubeconfig ~/.kube/config --extra-create-metadata',
    readSettings: readProvisionerSettings,
    loadRun: async () => (await import('./run.ts')).runProvisioner,
  })

export function readProvisionerSettings(values: Readonly<Record<string, unknown>>): ProvisionerSettings {
  const { featureGates, httpEndpoint, metricsAddress, enableCapacity, ...settings }: Values = readFlags(
    PROVISIONER_FLAGS,
    values,
  )
  const monitoring = readMonitoring({ httpEndpoint, metricsAddress, metricsPath: settings.metricsPath })
  if (settings.nodeDeployment && settings.leaderElection) {
    throw new UsageError(
      '--node-deployment and --leader-election are mutually exclusive: the provisioner of every node must run.',
    )
  }
  if (settings.volumeNameUuidLength === 0) throw invalidFlag('--volume-name-uuid-length', '0', '-1, or 1 or more')
  if (settings.volumeNamePrefix === '') throw invalidFlag('--volume-name-prefix', '', 'a text that is not empty')
  const capacity = parseEnableCapacity(enableCapacity, settings)
  if (capacity === 'local' && !settings.nodeDeployment) {
    throw new UsageError('--enable-capacity=local requires --node-deployment.')
  }
  if (capacity === 'central' && settings.nodeDeployment) {
    throw new UsageError(
      '--enable-capacity=central and --node-deployment are mutually exclusive: every node would publish all capacity.',
    )
  }
  const gates = readGates(featureGates, FIXED_PROVISIONER_GATES)
  const provisionerSettings = { ...settings, capacity, gates, monitoring }
  checkElectionFlags(provisionerSettings)
  return provisionerSettings
}

/** Gates of the upstream provisioner that cannot be changed here. */
export const FIXED_PROVISIONER_GATES: Readonly<Record<string, boolean>> = {
  Topology: true,
  HonorPVReclaimPolicy: true,
  CrossNamespaceVolumeDataSource: false,
}

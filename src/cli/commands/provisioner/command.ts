// `stowage provisioner`: flags and help. The flags are those of the upstream external-provisioner, so that a deployment can
// replace it and keep its arguments. What runs is run.ts.
import { FEATURE_GATES, type FeatureGates } from '../../../api/feature-gates.ts'
import type { ListenAddress } from '../../../base/listen-address.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { type CapacityMode, parseEnableCapacity } from '../../../controllers/capacity/index.ts'
import type { AddCommand } from '../../command.ts'
import { CONNECTION_FLAGS, ELECTION_FLAGS, MONITORING_FLAGS } from '../../flags/sidecar.ts'
import {
  duration,
  type Flag,
  type FlagValues,
  number,
  rate,
  readFlags,
  readGates,
  text,
  toggle,
  wrong,
} from '../../flags/typed.ts'
import { addSidecar, readMonitoring } from '../../sidecar-command.ts'

const FLAGS = {
  ...CONNECTION_FLAGS,
  workerThreads: number('--worker-threads', 100, 'claims processed at once, and as many volumes'),
  retryIntervalStart: duration(
    '--retry-interval-start',
    '1s',
    'first delay after a failure; doubles with every failure',
  ),
  retryIntervalMax: duration('--retry-interval-max', '5m', 'longest delay after failures'),
  volumeNamePrefix: text('--volume-name-prefix', 'pvc', 'prefix of volume names'),
  volumeNameUuidLength: number(
    '--volume-name-uuid-length',
    -1,
    'length of the claim uid in volume names; -1: all of it',
    {
      min: -1,
    },
  ),
  strictTopology: toggle('--strict-topology', false, 'request volumes on the selected node only'),
  immediateTopology: toggle(
    '--immediate-topology',
    true,
    'pass the topology of the cluster to the driver for Immediate classes too',
  ),
  extraCreateMetadata: toggle('--extra-create-metadata', false, 'pass the names of claim and volume to the driver'),
  defaultFstype: text('--default-fstype', '', 'file system if the class names none'),
  controllerPublishReadonly: toggle('--controller-publish-readonly', false, 'mark ReadOnlyMany volumes as read-only'),
  preventVolumeModeConversion: toggle(
    '--prevent-volume-mode-conversion',
    true,
    'reject restoring a snapshot with another volume mode, unless its content allows it',
  ),
  cloningProtectionThreads: number('--cloning-protection-threads', 1, 'clone sources released at once'),
  snapshotOrphanSweepInterval: duration(
    '--snapshot-orphan-sweep-interval',
    '5m',
    'interval of the search for orphaned snapshot finalizers; 0: only at the start',
    { min: 0 },
  ),
  provisionerSecretDir: text(
    '--provisioner-secret-dir',
    '',
    'directory with credentials for the driver, one file per key: used if the class names no secret, and for deletion',
  ),
  nodeDeployment: toggle('--node-deployment', false, 'run on every node, for the volumes of that node ($NODE_NAME)'),
  nodeDeploymentImmediateBinding: toggle(
    '--node-deployment-immediate-binding',
    true,
    'compete with other nodes for claims of Immediate classes',
  ),
  nodeDeploymentBaseDelay: duration('--node-deployment-base-delay', '20s', 'longest first delay of that competition'),
  nodeDeploymentMaxDelay: duration('--node-deployment-max-delay', '60s', 'longest delay of that competition'),
  enableCapacity: {
    flag: '--enable-capacity [true|false|central|local]',
    doc: 'publish storage capacity for the scheduler; true: central or local, as the deployment is',
    default: 'false',
    read(given: string, name: string) {
      if (!/^(true|false|central|local)$/i.test(given)) throw wrong(name, given, 'true, false, central or local')
      return given
    },
  } satisfies Flag<string>,
  capacityThreads: number('--capacity-threads', 1, 'GetCapacity calls at once'),
  capacityPollInterval: duration('--capacity-poll-interval', '1m', 'interval of GetCapacity for each segment'),
  capacityForImmediateBinding: toggle(
    '--capacity-for-immediate-binding',
    false,
    'publish capacity for Immediate classes too',
  ),
  capacityOwnerrefLevel: number(
    '--capacity-ownerref-level',
    1,
    'owner of the capacity objects: 0 this pod ($POD_NAME), 1 its owner, 2 the owner of that; -1 none',
    { min: -1 },
  ),
  kubeApiCapacityQps: rate('--kube-api-capacity-qps', 1, 'writes of capacity objects per second; -1: no limit'),
  kubeApiCapacityBurst: number('--kube-api-capacity-burst', 5, 'burst of writes of capacity objects'),
  ...ELECTION_FLAGS,
  ...MONITORING_FLAGS,
  featureGates: text('--feature-gates', '', `enable or disable features: ${FEATURE_GATES.slice(0, 2).join(', ')}`),
}

type Values = FlagValues<typeof FLAGS>

export interface ProvisionerSettings
  extends Omit<Values, 'featureGates' | 'httpEndpoint' | 'metricsAddress' | 'enableCapacity'> {
  /** Undefined: capacity is not published. */
  readonly capacity: CapacityMode['is'] | undefined
  readonly gates: FeatureGates
  readonly monitoring: ListenAddress | undefined
}

export const addProvisioner: AddCommand = (program, deps) =>
  addSidecar(program, deps, {
    name: 'provisioner',
    summary: 'provision volumes for claims, with a CSI driver',
    description:
      'Runs beside a CSI driver and provisions and deletes its volumes for the claims of any Kubernetes API server.',
    flags: FLAGS,
    example: '--csi-address /run/csi/socket --kubeconfig ~/.kube/config --extra-create-metadata',
    read: readProvisionerSettings,
    load: async () => (await import('./run.ts')).runProvisioner,
  })

export function readProvisionerSettings(given: Readonly<Record<string, unknown>>): ProvisionerSettings {
  const { featureGates, httpEndpoint, metricsAddress, enableCapacity, ...settings }: Values = readFlags(FLAGS, given)
  const monitoring = readMonitoring({ httpEndpoint, metricsAddress, metricsPath: settings.metricsPath })
  if (settings.nodeDeployment && settings.leaderElection) {
    throw new UsageError('--node-deployment and --leader-election exclude each other: every node works.')
  }
  if (settings.volumeNameUuidLength === 0) throw wrong('--volume-name-uuid-length', '0', '-1, or 1 or more')
  if (settings.volumeNamePrefix === '') throw wrong('--volume-name-prefix', '', 'a text that is not empty')
  const capacity = parseEnableCapacity(enableCapacity, settings)
  if (capacity === 'local' && !settings.nodeDeployment) {
    throw new UsageError('--enable-capacity=local needs --node-deployment, which names the node.')
  }
  if (capacity === 'central' && settings.nodeDeployment) {
    throw new UsageError(
      '--enable-capacity=central and --node-deployment exclude each other: every node would publish all capacity.',
    )
  }
  return { ...settings, capacity, gates: readGates(featureGates, SETTLED), monitoring }
}

/** Gates of the upstream provisioner with a fixed value here. */
const SETTLED: Readonly<Record<string, boolean>> = {
  Topology: true,
  CrossNamespaceVolumeDataSource: false,
  ReleaseLeaderElectionOnExit: true,
}

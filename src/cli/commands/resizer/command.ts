// `stowage resizer`: flags and help. The flags include those of the upstream external-resizer, so that the command can replace
// it with the same arguments. run.ts runs the command.
import type { FeatureGates } from '../../../api/feature-gates.ts'
import type { ListenAddress } from '../../../base/listen-address.ts'
import type { ThrottleOptions } from '../../../controllers/volume-changes/index.ts'
import type { AddCommand } from '../../command.ts'
import { CHANGE_BUDGET_DOC, CHANGE_COOLDOWN_DOC, parseChangeThrottle } from '../../flags/change-throttle.ts'
import {
  booleanFlag,
  durationFlag,
  type FlagValues,
  gatesFlag,
  numberFlag,
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

export const RESIZER_FLAGS = {
  ...CONNECTION_FLAGS,
  workers: numberFlag('--workers', 10, 'maximum number of claims processed concurrently'),
  retryIntervalStart: durationFlag(
    '--retry-interval-start',
    '1s',
    'delay after the first failure; doubles with every further failure',
  ),
  retryIntervalMax: durationFlag(
    '--retry-interval-max',
    '5m',
    'maximum delay after failures, and the delay after an infeasible request',
  ),
  resyncPeriod: durationFlag('--resync-period', '10m', 'accepted for compatibility, ignored', {
    minMs: 0,
  }),
  handleVolumeInuseError: booleanFlag(
    '--handle-volume-inuse-error',
    true,
    'wait until no pod uses the volume if the driver can only expand offline; requires read access to pods',
  ),
  checkCapacity: booleanFlag(
    '--check-capacity',
    false,
    'reject an expansion beyond the published capacity without a call to the driver; requires read access to CSIDrivers and CSIStorageCapacities',
  ),
  extraModifyMetadata: booleanFlag(
    '--extra-modify-metadata',
    false,
    'pass the names of the claim and the volume to the driver in modifications',
  ),
  nodeDeployment: booleanFlag(
    '--node-deployment',
    false,
    'run on every node, for volumes that are accessible only from that node ($NODE_NAME); one leader per node',
  ),
  changeBudget: textFlag('--change-budget', '', CHANGE_BUDGET_DOC),
  changeCooldown: textFlag('--change-cooldown', '', CHANGE_COOLDOWN_DOC),
  ...ELECTION_FLAGS,
  ...MONITORING_FLAGS,
  featureGates: gatesFlag('VolumeAttributesClass, VolumeProvisionedIO'),
}

/** Gates of the upstream resizer that cannot be changed here. */
export const FIXED_RESIZER_GATES = { AnnotateFsResize: true }

export interface ResizerSettings
  extends Omit<
    FlagValues<typeof RESIZER_FLAGS>,
    'featureGates' | 'httpEndpoint' | 'metricsAddress' | 'resyncPeriod' | 'changeBudget' | 'changeCooldown'
  > {
  readonly gates: FeatureGates
  readonly throttle: ThrottleOptions | undefined
  readonly monitoring: ListenAddress | undefined
}

export const addResizer: AddCommand = (program, deps) =>
  addSidecarCommand(program, deps, {
    name: 'resizer',
    summary: 'expand volumes and modify their attributes with a CSI driver',
    description:
      'Runs next to a CSI driver, and expands its volumes and modifies their attributes for the claims of any Kubernetes cluster.',
    flags: RESIZER_FLAGS,
    example: '--csi-address /run/csi/socket --kubeconfig ~/.kube/config --leader-election',
    readSettings: readResizerSettings,
    loadRun: async () => (await import('./run.ts')).runResizer,
  })

export function readResizerSettings(values: Readonly<Record<string, unknown>>): ResizerSettings {
  const {
    featureGates,
    httpEndpoint,
    metricsAddress,
    resyncPeriod: _,
    changeBudget,
    changeCooldown,
    ...settings
  } = readFlags(RESIZER_FLAGS, values)
  const monitoring = readMonitoring({ httpEndpoint, metricsAddress, metricsPath: settings.metricsPath })
  const throttle = parseChangeThrottle({ changeBudget, changeCooldown })
  const resizerSettings = { ...settings, gates: readGates(featureGates, FIXED_RESIZER_GATES), throttle, monitoring }
  checkElectionFlags(resizerSettings)
  return resizerSettings
}

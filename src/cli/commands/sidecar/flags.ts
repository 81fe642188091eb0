// The flags of `stowage sidecar`: those of external-provisioner, external-resizer, external-attacher and
// external-health-monitor, and some of its own, such as --controllers. An upstream flag that several of them
// share applies to all controllers. A flag with the prefix of a controller, such as --attacher-timeout, applies to that controller only.

import { FEATURE_GATES } from '../../../api/feature-gates.ts'
import { stowageVersion } from '../../../apiserver/version.ts'
import {
  booleanFlag,
  durationFlag,
  type Flag,
  gatesFlag,
  numberFlag,
  rateFlag,
  textFlag,
} from '../../flags/flag-types.ts'
import { PROVISIONER_FLAGS } from '../provisioner/command.ts'
import { RESIZER_FLAGS } from '../resizer/command.ts'

/** Flags of external-resizer, external-attacher and external-health-monitor that have no effect here. */
export const IGNORED_FLAGS: readonly string[] = [
  ...['--resync-period', '--resync', '--max-grpc-log-length'],
  ...['--volume-list-add-interval', '--node-list-add-interval'],
]

/** Returns the flag without a default. Its value is undefined if it is not set. */
const withoutDefault = <T>({ default: _, read, ...flag }: Flag<T>): Flag<T | undefined> => ({
  ...flag,
  default: '',
  read: (text, name) => (text === '' ? undefined : read(text, name)),
})

/** `--attacher-timeout` overrides `--timeout` for the attacher. */
const overrideTimeout = (prefix: string) =>
  withoutDefault(durationFlag(`--${prefix}-timeout`, '', `--timeout of the ${prefix}`))
const overrideRetryStart = (prefix: string) =>
  withoutDefault(durationFlag(`--${prefix}-retry-interval-start`, '', `--retry-interval-start of the ${prefix}`))
const overrideRetryMax = (prefix: string) =>
  withoutDefault(durationFlag(`--${prefix}-retry-interval-max`, '', `--retry-interval-max of the ${prefix}`))
const overrideThreads = (prefix: string) =>
  withoutDefault(
    numberFlag(`--${prefix}-worker-threads`, 0, `maximum number of objects that the ${prefix} processes concurrently`),
  )

export const SIDECAR_FLAGS = {
  ...PROVISIONER_FLAGS,
  controllers: textFlag(
    '--controllers',
    '*',
    'controllers to run, separated by commas: provisioner, resizer, modifier, attacher, health-monitor, or * for all that ' +
      'the driver supports; -NAME leaves one out; resizer stands for resizer and modifier',
  ),
  timeout: withoutDefault(
    durationFlag(
      '--timeout',
      '',
      'timeout of one call to the driver (default: 10s, for attacher and health-monitor 15s)',
    ),
  ),
  kubeApiQps: rateFlag(
    '--kube-api-qps',
    -1,
    'maximum number of requests to the API server per second, of all controllers together; -1 for no limit',
  ),
  workerThreads: numberFlag(
    '--worker-threads',
    100,
    'maximum number of objects that all controllers together process concurrently; some workers are reserved for each',
  ),
  workers: RESIZER_FLAGS.workers,
  retryIntervalMax: RESIZER_FLAGS.retryIntervalMax,
  handleVolumeInuseError: RESIZER_FLAGS.handleVolumeInuseError,
  checkCapacity: RESIZER_FLAGS.checkCapacity,
  extraModifyMetadata: RESIZER_FLAGS.extraModifyMetadata,
  changeBudget: RESIZER_FLAGS.changeBudget,
  changeCooldown: RESIZER_FLAGS.changeCooldown,
  reconcileSync: durationFlag(
    '--reconcile-sync',
    '1m',
    'interval at which attachments are compared with the volumes that the driver lists as published',
  ),
  maxEntries: numberFlag(
    '--max-entries',
    0,
    'maximum number of volumes in one response of the driver for --reconcile-sync; 0 if the driver decides',
    { min: 0 },
  ),
  listVolumesInterval: durationFlag(
    '--list-volumes-interval',
    '5m',
    'interval at which the conditions of all volumes are listed, if the driver can list volumes',
  ),
  monitorInterval: durationFlag(
    '--monitor-interval',
    '1m',
    'interval at which the condition of each volume is read, if the driver cannot list volumes',
  ),
  defaultFstype: textFlag('--default-fstype', '', 'file system type if the class or the volume does not set one'),
  nodeDeployment: booleanFlag(
    '--node-deployment',
    false,
    'run on every node, for the volumes and attachments of that node only ($NODE_NAME)',
  ),
  holdUpstreamLeases: booleanFlag(
    '--hold-upstream-leases',
    false,
    'also hold the leases of the upstream sidecars whose work this process does, so that both never run at ' +
      'the same time; by default the sidecar does not lead while one of them is held',
  ),
  printReplacement: booleanFlag(
    '--print-replacement',
    false,
    'read manifests of a driver from standard input, print them with its upstream sidecars replaced by this one, and exit',
  ),
  image: textFlag('--image', `stowage:${stowageVersion}`, 'image of the container that --print-replacement prints'),
  featureGates: gatesFlag(FEATURE_GATES.slice(0, 3).join(', ')),
  provisionerTimeout: overrideTimeout('provisioner'),
  resizerTimeout: overrideTimeout('resizer'),
  attacherTimeout: overrideTimeout('attacher'),
  healthMonitorTimeout: overrideTimeout('health-monitor'),
  provisionerWorkerThreads: overrideThreads('provisioner'),
  attacherWorkerThreads: overrideThreads('attacher'),
  healthMonitorWorkerThreads: numberFlag(
    '--health-monitor-worker-threads',
    10,
    'maximum number of volumes whose condition is read concurrently',
  ),
  provisionerRetryIntervalStart: overrideRetryStart('provisioner'),
  resizerRetryIntervalStart: overrideRetryStart('resizer'),
  attacherRetryIntervalStart: overrideRetryStart('attacher'),
  provisionerRetryIntervalMax: overrideRetryMax('provisioner'),
  resizerRetryIntervalMax: overrideRetryMax('resizer'),
  attacherRetryIntervalMax: overrideRetryMax('attacher'),
}

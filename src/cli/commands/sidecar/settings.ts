// Reads the settings of the process and of each controller from the flags of `stowage sidecar`.
import type { AttacherOptions } from '../../../controllers/attaching/index.ts'
import type { VolumeHealthOptions } from '../../../controllers/volume-health/index.ts'
import type { SidecarSettings } from '../../../processes/run-sidecar.ts'
import { readFlags, readGates } from '../../flags/flag-types.ts'
import { FIXED_PROVISIONER_GATES, type ProvisionerSettings, readProvisionerSettings } from '../provisioner/command.ts'
import { FIXED_RESIZER_GATES, type ResizerSettings, readResizerSettings } from '../resizer/command.ts'
import { SIDECAR_FLAGS } from './flags.ts'
import { type ControllerSelection, parseControllers } from './parse-controllers.ts'

export interface StowageSidecarSettings extends SidecarSettings {
  readonly controllers: ControllerSelection
  readonly holdUpstreamLeases: boolean
  readonly printReplacement: boolean
  /** The image of the container that --print-replacement prints. */
  readonly image: string
  readonly provisioner: ProvisionerSettings
  readonly resizer: ResizerSettings
  readonly attacher: AttacherOptions
  readonly healthMonitor: VolumeHealthOptions
}

/** Gates of the upstream attacher that cannot be changed here. */
const FIXED_ATTACHER_GATES = { MutableCSINodeAllocatableCount: true }
const FIXED_GATES = { ...FIXED_PROVISIONER_GATES, ...FIXED_RESIZER_GATES, ...FIXED_ATTACHER_GATES }

const ATTACHER_TIMEOUT_MS = 15_000
const HEALTH_MONITOR_TIMEOUT_MS = 15_000

export function readSidecarSettings(values: Readonly<Record<string, unknown>>): StowageSidecarSettings {
  const flags = readFlags(SIDECAR_FLAGS, values)
  const gates = readGates(flags.featureGates, FIXED_GATES)
  // The gates of one upstream sidecar are unknown to the others.
  const commonValues = { ...values, featureGates: '', kubeApiQps: String(flags.kubeApiQps) }
  const provisioner = readProvisionerSettings({
    ...commonValues,
    timeout: values.provisionerTimeout ?? values.timeout,
    workerThreads: values.provisionerWorkerThreads ?? values.workerThreads,
    retryIntervalStart: values.provisionerRetryIntervalStart ?? values.retryIntervalStart,
    retryIntervalMax: values.provisionerRetryIntervalMax ?? values.retryIntervalMax,
  })
  const resizer = readResizerSettings({
    ...commonValues,
    timeout: values.resizerTimeout ?? values.timeout,
    retryIntervalStart: values.resizerRetryIntervalStart ?? values.retryIntervalStart,
    retryIntervalMax: values.resizerRetryIntervalMax ?? values.retryIntervalMax,
  })
  return {
    ...provisioner,
    gates,
    workerBudget: flags.workerThreads,
    controllers: parseControllers(flags.controllers),
    holdUpstreamLeases: flags.holdUpstreamLeases,
    printReplacement: flags.printReplacement,
    image: flags.image,
    provisioner: { ...provisioner, gates },
    resizer: { ...resizer, gates },
    attacher: {
      timeoutMs: flags.attacherTimeout ?? flags.timeout ?? ATTACHER_TIMEOUT_MS,
      workers: flags.attacherWorkerThreads ?? flags.workerThreads,
      retryIntervalStartMs: flags.attacherRetryIntervalStart ?? flags.retryIntervalStart,
      retryIntervalMaxMs: flags.attacherRetryIntervalMax ?? flags.retryIntervalMax,
      defaultFsType: flags.defaultFstype,
      syncIntervalMs: flags.reconcileSync,
      ...(flags.maxEntries > 0 ? { listEntriesMax: flags.maxEntries } : {}),
    },
    healthMonitor: {
      timeoutMs: flags.healthMonitorTimeout ?? flags.timeout ?? HEALTH_MONITOR_TIMEOUT_MS,
      workers: flags.healthMonitorWorkerThreads,
      listIntervalMs: flags.listVolumesInterval,
      volumeIntervalMs: flags.monitorInterval,
    },
  }
}

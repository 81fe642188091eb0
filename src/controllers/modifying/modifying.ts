// Changes the attributes of volumes while claims are bound to them: their class, and iops and throughput of their own, on
// one path. A kind of change in the frame of ../changing; plan-modification.ts decides, ask-driver.ts asks.
import type { FeatureGates } from '../../api/feature-gates.ts'
import { volumeAttributesClassKind } from '../../api/kinds/attributes-class/attributes-class.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { amountOf, IO_RESOURCES } from '../../api/kinds/shared/provisioned-io.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { keyOfObject } from '../../client/index.ts'
import type { CsiDriver, DriverFacts } from '../../csi/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import { type EventRecorder, type LeaderElection, type Source, source } from '../../runtime/index.ts'
import { claimsOfPod } from '../../volumes/claims-of-pod.ts'
import { type Change, followUsers, isOver, type Pace } from '../volume-changes/index.ts'
import { Answers } from './answers.ts'
import type { ModifyingContext } from './context.ts'
import type { ModifyingMetrics } from './metrics.ts'
import { modifyClaim } from './modify-claim.ts'
import { type ModifyingOptions, modifyingSettings } from './options.ts'
import { storageClassReader } from './storage-class-reader.ts'

export interface ModifyingDeps extends ControllerDeps {
  /** Of which no two calls about one volume run at once (src/csi/serialize-calls.ts). */
  readonly driver: CsiDriver
  readonly facts: DriverFacts
  readonly gates: FeatureGates
  /** Run by whoever made it. */
  readonly events: Pick<EventRecorder, 'record'>
  readonly election?: Pick<LeaderElection, 'assertStillLeader' | 'fence'>
  readonly modifyingMetrics?: ModifyingMetrics
  /** Shared with other kinds of change. */
  readonly pace?: Pace
  readonly options?: ModifyingOptions
}

const BY_CLASS = 'modifying: attributes class'

export function createModifying(deps: ModifyingDeps): Change {
  const { client, caches, clock, log, driver, facts, gates, events, election, modifyingMetrics, pace } = deps
  const claims = caches.of(persistentVolumeClaimKind)
  const classes = gates.enabled('VolumeAttributesClass') ? caches.of(volumeAttributesClassKind) : undefined
  const settings = modifyingSettings(deps.options)
  const pods = settings.handlesInUse ? caches.of(podKind) : undefined
  if (pods) followUsers(pods)
  claims.addIndex(BY_CLASS, classesOf)
  const answers = new Answers(clock)
  const context: ModifyingContext = {
    driver,
    facts,
    gates,
    settings,
    client,
    clock,
    log,
    events,
    ...(modifyingMetrics ? { metrics: modifyingMetrics } : {}),
    ...(election ? { election } : {}),
    ...(pace ? { pace } : {}),
    claims,
    volumes: caches.of(persistentVolumeKind),
    ...(pods ? { pods } : {}),
    answers,
    storageClass: storageClassReader({ client, clock }),
    classOf(name) {
      const found = classes?.get({ name })
      if (found) return { is: 'found', driverName: found.driverName, parameters: found.parameters ?? {} }
      return classes?.synced ? { is: 'missing' } : { is: 'unknown' }
    },
  }

  const sources: Source[] = []
  if (classes) {
    sources.push(
      source({
        cache: classes,
        keysOf: ({ metadata: { name = '' } }) => claims.byIndex(BY_CLASS, name).map(keyOfObject),
        matters: () => false, // classes come and go, and never change
        mayBeOff: true, // a server may not serve classes, and volumes still have to grow
      }),
    )
  }
  if (pods) {
    const isHeld = (key: string) => {
      const claim = claims.get(key)
      return claim !== undefined && answers.isOffline(claim)
    }
    sources.push(
      source({
        cache: pods,
        keysOf: (pod) => claimsOfPod(pod).filter(isHeld),
        matters: (next, old) => isOver(next) !== isOver(old),
      }),
    )
  }
  return {
    name: 'modifying',
    matters: (next, old) => wishOf(next) !== wishOf(old),
    sources,
    reconcile: (subject, signal) => modifyClaim(subject, context, signal),
  }
}

/** The class asked for, the one in effect, and the one being moved to. */
function classesOf({ spec, status }: Readonly<PersistentVolumeClaim>): string[] {
  const names = [
    spec?.volumeAttributesClassName,
    status?.currentVolumeAttributesClassName,
    status?.modifyVolumeStatus?.targetVolumeAttributesClassName,
  ]
  return [...new Set(names.filter((name): name is string => Boolean(name)))]
}

/** What a user can ask for. What is written here in answer does not cut a backoff short. */
const wishOf = ({ spec }: Readonly<PersistentVolumeClaim>): string =>
  JSON.stringify([
    spec?.volumeAttributesClassName || null,
    ...IO_RESOURCES.map((name) => amountOf(spec?.resources?.requests, name) ?? null),
  ])

// A plan describes one run as JSON data: setup, fault rates and steps. workload/generate-plan.ts generates it from a seed,
// engine/run-plan.ts runs it, shrink-plan.ts makes it smaller. A step names the objects and processes that it concerns: the other
// steps stay valid if one is removed.
import type { ExpansionQuota } from '../../api/kind.ts'
import type { CsiFailureCode } from '../../csi/index.ts'
import type { DriverFaults } from '../environment/driver.ts'
import type { NetworkFaults } from '../environment/network.ts'
import type { StockVerb } from '../environment/stock-answers.ts'
import type { DriverName } from './catalog.ts'

export interface Plan {
  readonly seed: number
  /** The workload that generated the plan. Default `mixed`. */
  readonly workload?: string
  /** How long users act and faults occur. Then all faults end. */
  readonly minutes: number
  readonly setup: Setup
  readonly faultRates: FaultRates
  /** Ordered by time. */
  readonly steps: readonly Step[]
  /** The steps after the system has come to rest. The checkers run again after each of them. */
  readonly atRest?: readonly AtRestStep[]
}

export interface Setup {
  readonly nodes: number
  /** Processes that run the controllers; one of them leads. */
  readonly controlReplicas: number
  /** Whether a driver's controllers run in the control process or as sidecars (provisioner, resizer, attacher). */
  readonly driverControllers: 'in-process' | 'sidecars'
  readonly commits: 'atomic' | 'one by one'
  /** `stock`: the server answers as a stock API server does (environment/stock-answers.ts). Requires `one by one`. */
  readonly answers?: 'stock'
  readonly capacityReservation: boolean
  readonly expansionQuota: ExpansionQuota
  /** Whether net.sim expands volumes without NodeExpandVolume. */
  readonly netExpandsWithoutNode: boolean
  /** API servers that share the store; users reach any of them. Default 1. */
  readonly apiServers?: number
  /**
   * Whether each agent acts as the user of its node. The node authorizer and NodeRestriction limit this user to the objects that
   * the node's pods use, so the agent reads claims, volumes and attachments by name. The service account controllers run too.
   */
  readonly identities?: boolean
  /** Adds a process whose watched caches are compared with the store. */
  readonly cacheFollower?: boolean
  /** Adds the in-process plugin and EXTRA_CLASSES. */
  readonly memoryPlugin?: boolean
  /** Runs the stateful set controller. Off by default, because it would change the runs of saved regressions. */
  readonly statefulSets?: boolean
  /** Runs the controllers of automatic growth and of node topology. Off by default, for the same reason. */
  readonly autoGrow?: boolean
  /**
   * Whether the volumes of local.sim are on the disks of the nodes: the driver cannot reach them while the machine is off,
   * suspended or cut off. Adds LOST_VOLUME_CLASSES.
   */
  readonly nodeStorage?: boolean
  /** Adds a binder that works on the same claims without leader election. */
  readonly secondBinder?: boolean
  /** Adds a provisioner of net.sim that works on the same claims without leader election. Requires sidecars. */
  readonly secondProvisioner?: boolean
}

/** Probabilities of faults at any moment of the run. */
export interface FaultRates {
  readonly network: Partial<NetworkFaults>
  /** Probability that a write to the server's disk fails. */
  readonly diskErrors: number
  readonly drivers: Readonly<Partial<Record<DriverName, Partial<DriverFaults>>>>
  /** By process name (process-names.ts): probability of a crash at each await. */
  readonly crashes: Readonly<Record<string, number>>
}

/**
 * `restart`: controllers and agents restart. `unrelated changes`: objects change in ways that make no pod schedulable, and
 * the scheduler must not attempt any. `use free quota`: claims are created, and the server must reject those that exceed a
 * quota. `return lost nodes`: the machines that were lost for good boot after all.
 */
export type AtRestStep = 'restart' | 'unrelated changes' | 'use free quota' | 'return lost nodes'

export interface Step {
  readonly atMs: number
  readonly action: Action
}

export type Action = UserAction | Fault

/** A request of a user or an administrator to the server. */
export type UserAction =
  | {
      readonly do: 'create'
      readonly kind: KindName
      readonly object: Manifest
      readonly dryRun?: boolean
    }
  /** Creates all objects in one transaction. */
  | { readonly do: 'create together'; readonly kind: KindName; readonly objects: readonly Manifest[] }
  | {
      readonly do: 'edit'
      readonly kind: KindName
      readonly ref: Ref
      readonly patch: Manifest
      readonly purpose: string
    }
  | {
      readonly do: 'delete'
      readonly kind: KindName
      readonly ref: Ref
      readonly graceSeconds?: number
      readonly propagation?: 'Foreground' | 'Orphan'
    }
  /** Sets the claim's attributes class, size and amounts back to what its status reports. */
  | { readonly do: 'revert'; readonly ref: Ref }
  /** Server and controllers restart with a feature gate on or off. */
  | { readonly do: 'set gate'; readonly gate: string; readonly isOn: boolean }
  /** Creates a volume directly in the driver, and a PersistentVolume for it. */
  | { readonly do: 'import'; readonly driver: DriverName; readonly name: string; readonly object: Manifest }

export type KindName =
  | 'claim'
  | 'pod'
  | 'volume'
  | 'storage class'
  | 'attributes class'
  | 'quota'
  | 'limit range'
  | 'node'
  | 'namespace'
  | 'config map'
  | 'capacity'
  | 'stateful set'

/** The name of an object. A volume can also be identified by the namespace and name of its current or last claim. */
export interface Ref {
  readonly namespace?: string
  readonly name: string
}

/** An object as a user writes it. */
export type Manifest = Readonly<Record<string, unknown>>

export type Fault =
  | { readonly do: 'crash'; readonly process: string; readonly downMs: number }
  /** The process stops at its next await and continues after `ms`; by then another replica may lead. */
  | { readonly do: 'freeze'; readonly process: string; readonly ms: number }
  | { readonly do: 'jump clock'; readonly process: string; readonly byMs: number }
  /** `isOutOfService`: an administrator taints the node while it is off. */
  | { readonly do: 'cut power'; readonly node: string; readonly downMs: number; readonly isOutOfService: boolean }
  /**
   * The server loses a node: its machine is off, is cut off from the server while its agent and its pods continue (`split`), or
   * is suspended and keeps its mounts. After `fenceMs` an administrator taints it as out of service; a machine that is cut off is
   * switched off first. The node returns after `backMs`; without it, the node is lost for good.
   */
  | {
      readonly do: 'lose node'
      readonly node: string
      readonly how: 'power' | 'split' | 'suspend'
      readonly fenceMs?: number
      readonly backMs?: number
    }
  | { readonly do: 'break watches' }
  /**
   * Watches of one process or all, of one kind or all, deliver nothing for `ms`; then they break, and a resume fails with 410.
   */
  | { readonly do: 'cut history'; readonly process?: string; readonly plural?: string; readonly ms: number }
  | { readonly do: 'refuse writes'; readonly ms: number }
  /** The network of one process or all loses this share of all messages, or only of the replies to writes. */
  | {
      readonly do: 'bad network'
      readonly process?: string
      readonly ms: number
      readonly lose: number
      readonly only?: 'replies'
    }
  /** The next `times` calls of this method fail. */
  | {
      readonly do: 'driver fails'
      readonly driver: DriverName
      readonly method: string
      readonly code: CsiFailureCode
      readonly times: number
    }
  | { readonly do: 'driver hangs'; readonly driver: DriverName; readonly method: string; readonly ms: number }
  | { readonly do: 'lose replies'; readonly driver: DriverName; readonly ms: number }
  | { readonly do: 'fill pool'; readonly driver: DriverName; readonly ms: number }
  /** The driver loses all its volumes. */
  | { readonly do: 'lose state'; readonly driver: DriverName }
  | { readonly do: 'report late'; readonly driver: DriverName; readonly ms: number }
  /** The server denies these verbs on a resource, as RBAC does. Only with stock answers. */
  | { readonly do: 'deny'; readonly plural: string; readonly verbs: readonly StockVerb[]; readonly ms: number }
  /** The server does not serve a kind: 404 for every request. Only with stock answers. */
  | { readonly do: 'stop serving'; readonly plural: string; readonly ms: number }

const FAULTS: Readonly<Record<Fault['do'], true>> = {
  crash: true,
  freeze: true,
  'jump clock': true,
  'cut power': true,
  'lose node': true,
  'break watches': true,
  'cut history': true,
  'refuse writes': true,
  'bad network': true,
  'driver fails': true,
  'driver hangs': true,
  'lose replies': true,
  'fill pool': true,
  'lose state': true,
  'report late': true,
  deny: true,
  'stop serving': true,
}

export const FAULT_KINDS = Object.keys(FAULTS) as readonly Fault['do'][]

export const isFault = (action: Action): action is Fault => Object.hasOwn(FAULTS, action.do)

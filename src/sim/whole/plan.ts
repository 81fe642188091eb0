// What one seed does to the whole system, as data: who does what when, what breaks when, and how bad the weather is.
// A plan is made from a seed (make-plan.ts), can be run again (run.ts), and can be made smaller (shrink.ts): every step
// names what it is about, so that taking one away leaves the others as they were.
import type { ExpansionQuota } from '../../api/kind.ts'
import type { CsiFailureCode } from '../../csi/index.ts'
import type { DriverFaults } from '../driver.ts'
import type { NetworkFaults } from '../network.ts'
import type { DriverName } from './universe.ts'

export interface Plan {
  readonly seed: number
  /** How long people and faults are at work; healing comes after. */
  readonly minutes: number
  readonly setup: Setup
  readonly weather: Weather
  /** By time. */
  readonly steps: readonly Step[]
}

export interface Setup {
  readonly nodes: number
  /** Processes that run the controllers; one leads. */
  readonly controlReplicas: number
  /** The drivers' controllers run beside the others, or in processes of their own (provisioner, resizer, attacher). */
  readonly home: 'together' | 'apart'
  readonly commits: 'atomic' | 'one by one'
  readonly capacityReservation: boolean
  readonly expansionQuota: ExpansionQuota
  /** Volumes of net.sim are as large as asked for without their nodes' doing. */
  readonly netGrowsAlone: boolean
}

/** What may go wrong at any moment, with what probability. */
export interface Weather {
  readonly network: Partial<NetworkFaults>
  readonly diskRefuses: number
  readonly drivers: Readonly<Partial<Record<DriverName, Partial<DriverFaults>>>>
  /** Crash of a process at any await, by its name (stage.ts). */
  readonly crashes: Readonly<Record<string, number>>
}

export interface Step {
  readonly atMs: number
  readonly act: Act
}

export type Act = PeopleAct | FaultAct

/** What users and administrators ask the server for. Objects are written as a person would write them. */
export type PeopleAct =
  | { readonly do: 'create'; readonly kind: KindName; readonly object: ObjectText }
  | {
      readonly do: 'edit'
      readonly kind: KindName
      readonly of: Named
      readonly patch: ObjectText
      readonly why: string
    }
  | {
      readonly do: 'delete'
      readonly kind: KindName
      readonly of: Named
      readonly graceSeconds?: number
      readonly propagation?: 'Foreground' | 'Orphan'
    }
  /** Takes the claim's class, size or amounts back to what its status says it has. */
  | { readonly do: 'go back'; readonly of: Named }
  /** The servers and controllers are started anew with a feature on or off. */
  | { readonly do: 'switch gate'; readonly gate: string; readonly isOn: boolean }
  /** A volume that was made by hand in the driver, and its object. */
  | { readonly do: 'import'; readonly driver: DriverName; readonly name: string; readonly object: ObjectText }

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

/** A volume is also named by the claim that has it, or had it: with that claim's namespace and name. */
export interface Named {
  readonly namespace?: string
  readonly name: string
}

export type ObjectText = Readonly<Record<string, unknown>>

/** What breaks at one moment. Whatever lasts names for how long. */
export type FaultAct =
  | { readonly do: 'crash'; readonly process: string; readonly downMs: number }
  /** It stops in the middle of whatever it does, and goes on as if nothing had been: others may lead by then. */
  | { readonly do: 'freeze'; readonly process: string; readonly ms: number }
  | { readonly do: 'jump clock'; readonly process: string; readonly byMs: number }
  | { readonly do: 'cut power'; readonly node: string; readonly downMs: number; readonly isSaidLost: boolean }
  | { readonly do: 'break watches' }
  /** Nothing comes on the watches of a process or of all, of one kind or any, for this long; then they are told 410. */
  | { readonly do: 'cut history'; readonly process?: string; readonly plural?: string; readonly ms: number }
  | { readonly do: 'refuse writes'; readonly ms: number }
  /** Nobody reaches the server but over a network that loses this share of everything, or only of the replies to writes. */
  | {
      readonly do: 'bad network'
      readonly process?: string
      readonly ms: number
      readonly lose: number
      readonly only?: 'replies'
    }
  /** The next call of this kind. */
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
  /** All that the driver held is gone, behind everybody's back. */
  | { readonly do: 'lose state'; readonly driver: DriverName }
  | { readonly do: 'report late'; readonly driver: DriverName; readonly ms: number }

const FAULTS: Readonly<Record<FaultAct['do'], true>> = {
  crash: true,
  freeze: true,
  'jump clock': true,
  'cut power': true,
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
}

export const FAULT_WORDS = Object.keys(FAULTS) as readonly FaultAct['do'][]

export const isFault = (act: Act): act is FaultAct => Object.hasOwn(FAULTS, act.do)

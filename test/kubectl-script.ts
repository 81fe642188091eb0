// The kubectl script, in the order it runs: each step builds on the steps before.
import { applying } from './kubectl/applying.ts'
import { applyingServerSide } from './kubectl/applying-server-side.ts'
import { asking } from './kubectl/asking.ts'
import { changing } from './kubectl/changing.ts'
import { creating } from './kubectl/creating.ts'
import { deleting } from './kubectl/deleting.ts'
import { describing } from './kubectl/describing.ts'
import { explaining } from './kubectl/explaining.ts'
import { reading } from './kubectl/reading.ts'
import { refusing } from './kubectl/refusing.ts'
import type { Step } from './kubectl/step.ts'
import { tables } from './kubectl/tables.ts'
import { waiting } from './kubectl/waiting.ts'
import { watching } from './kubectl/watching.ts'

export const SCRIPT: readonly Step[] = [
  ...creating,
  ...tables,
  ...reading,
  ...describing,
  ...explaining,
  ...refusing,
  ...asking,
  ...watching,
  ...applying,
  ...applyingServerSide,
  ...changing,
  ...waiting,
  ...deleting,
]

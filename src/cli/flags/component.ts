// Flags of the commands about a component's permissions: `rbac print` and `doctor`.
import { Option } from 'commander'

/** The components, as in commands/rbac/select-rules.ts, which is imported only when a command runs. */
const COMPONENTS = [
  'sidecar',
  'provisioner',
  'resizer',
  'scheduler',
  'controllers',
  'node',
  'capacity-cleanup',
  'capacity-templates',
  'leaks',
  'sdk',
]

export const componentOption = (description: string) =>
  new Option('--component <name>', `${description}; sdk is a provisioner in TypeScript`).choices(COMPONENTS)

export const featuresOption = () =>
  new Option('--features <names>', 'features in use, separated by commas (default: all; "" for none)').argParser(
    parseNames,
  )

const parseNames = (text: string): string[] =>
  text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')

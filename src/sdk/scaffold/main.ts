// The program of @stowage/create-provisioner: `npm create @stowage/provisioner DIRECTORY` creates a provisioner project.
import { basename, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { stowageVersion } from '../../apiserver/version.ts'
import { UsageError } from '../../base/usage-error.ts'
import { createProject } from './create-project.ts'

const HELP = `Creates the project of a provisioner in TypeScript.

Usage: npm create @stowage/provisioner DIRECTORY [-- --name DOMAIN/NAME]

  --name DOMAIN/NAME  name of the provisioner in storage classes (default example.com/<name of the directory>)
  --help              print this help

Example: npm create @stowage/provisioner disks -- --name storage.example.com/disks

Exit codes: 0 created, 1 failed, 2 wrong arguments.
`

try {
  const { values, positionals } = readArguments(process.argv.slice(2))
  if (values.help) process.stdout.write(HELP)
  else {
    const [directory, ...extraArguments] = positionals
    if (!directory || extraArguments.length > 0) throw new UsageError('Expected one directory. --help shows the usage.')
    const name = values.name ?? `example.com/${basename(resolve(directory)).toLowerCase()}`
    await createProject({
      directory: resolve(directory),
      name,
      sdkVersion: stowageVersion,
      template: new URL('template/', import.meta.url),
    })
    process.stdout.write(
      `Created the provisioner ${name} in ${directory}.\n\n  cd ${directory}\n  npm install\n  npm test\n`,
    )
  }
} catch (error) {
  process.stderr.write(`create-provisioner: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = error instanceof UsageError ? 2 : 1
}

function readArguments(args: string[]) {
  const options = { name: { type: 'string' }, help: { type: 'boolean' } } as const
  try {
    return parseArgs({ args, options, allowPositionals: true })
  } catch (error) {
    throw new UsageError(`${(error as Error).message} --help shows the usage.`)
  }
}

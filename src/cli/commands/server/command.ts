// `stowage server`: the API server without the controllers of `stowage controllers`. It shares flags with `stowage up`
// (../up/serve-command.ts).
import type { AddCommand } from '../../command.ts'
import { addServeCommand } from '../up/serve-command.ts'

export const addServer: AddCommand = (program, deps) =>
  void addServeCommand(program, deps, {
    name: 'server',
    summary: 'start only the API server',
    description: 'Starts the API server without the controllers, scheduler or nodes of `stowage up`.',
    runsControllers: false,
  })

// `stowage server`: the API server without controllers. It shares its flags with `stowage up`.
import type { AddCommand } from '../../command.ts'
import { addServing } from '../up/serving.ts'

export const addServer: AddCommand = (program, deps) =>
  void addServing(program, deps, {
    name: 'server',
    summary: 'start the API server alone',
    description: 'Starts the API server on an embedded store, without controllers.',
    controllers: false,
  })

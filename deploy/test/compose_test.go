// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package deploy tests what brings the project onto other people's machines, with the
// libraries of those who read it: Compose, Helm, Kubernetes and GitHub's workflows. It is
// a module of its own, so that the runtime does not depend on them.
package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"
)

// composed is compose.yaml as `docker compose config` reads it.
func composed(t *testing.T, env ...string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../../compose.yaml"}, cli.WithEnv(env), cli.WithName("trial"))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func service(t *testing.T, project *types.Project, name string) types.ServiceConfig {
	t.Helper()
	found, err := project.GetService(name)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestCompose_given_the_file_when_read_should_have_everything_and_name_files_that_exist(t *testing.T) {
	project := composed(t)
	for name, image := range map[string]string{
		"iggy": "apache/iggy:0.8.0", "connect": "apache/iggy-connect-go", "prometheus": "prom/prometheus:", "grafana": "grafana/grafana:",
	} {
		if got := service(t, project, name).Image; !strings.HasPrefix(got, image) {
			t.Errorf("%s: image %s", name, got)
		}
	}
	for _, one := range project.Services {
		for _, volume := range one.Volumes {
			if volume.Type == types.VolumeTypeBind {
				mustExist(t, volume.Source)
			}
		}
		for _, port := range one.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s is open to the network", one.Name, port.Published)
			}
		}
	}
	for _, config := range project.Configs {
		if config.File != "" {
			mustExist(t, config.File)
		}
	}
	mustExist(t, filepath.Join(service(t, project, "connect").Build.Context, "Dockerfile"))
}

func mustExist(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestCompose_given_the_runtime_when_checked_should_have_connectors_that_work(t *testing.T) {
	connect := service(t, composed(t), "connect")
	var env []string
	for name, value := range connect.Environment {
		env = append(env, name+"="+*value)
	}
	plugins, err := filepath.Abs("../../build/plugins")
	if err != nil {
		t.Fatal(err)
	}
	env = append(env,
		"IGGY_CONNECTORS_SOURCE_ORDERS_PATH="+plugins+"/librandom_source",
		"IGGY_CONNECTORS_SINK_PRINTER_PATH="+plugins+"/libstdout_sink")
	checkConfiguration(t, connect.Volumes[0].Source, env)
	if grace := connect.StopGracePeriod; grace == nil || grace.String() != "35s" { // above shutdown.timeout
		t.Errorf("killed after %v", grace)
	}
}

func TestCompose_given_an_api_key_when_read_should_give_it_to_the_runtime_and_to_prometheus(t *testing.T) {
	project := composed(t, "IGGY_CONNECTORS_HTTP_API_KEY=mine")
	if got := *service(t, project, "connect").Environment["IGGY_CONNECTORS_HTTP_API_KEY"]; got != "mine" {
		t.Errorf("the runtime's key is %q", got)
	}
	var prometheus struct {
		ScrapeConfigs []struct {
			HTTPHeaders   map[string]struct{ Secrets []string } `yaml:"http_headers"`
			StaticConfigs []struct{ Targets []string }          `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(project.Configs["prometheus"].Content), &prometheus); err != nil {
		t.Fatal(err)
	}
	scrape := prometheus.ScrapeConfigs[0]
	if key := scrape.HTTPHeaders["api-key"].Secrets; len(key) != 1 || key[0] != "mine" || scrape.StaticConfigs[0].Targets[0] != "connect:8081" {
		t.Errorf("Prometheus scrapes with %v", scrape)
	}
}
